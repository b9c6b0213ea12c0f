/* Between the addresses of host_pattern.h and those of sockets. */
#ifndef EXECSANDBOX_PROXY_ADDRESS_H
#define EXECSANDBOX_PROXY_ADDRESS_H

#include <sys/socket.h>

#include "host_pattern.h"

/* Fills STORAGE; returns how much of it counts. A mapped address is an AF_INET one there. */
socklen_t address_to_socket(const struct host_address *address, uint16_t port,
                            struct sockaddr_storage *storage);

/*
 * False where SOCKET_ADDRESS is neither AF_INET nor AF_INET6.  Whatever only wraps an IPv4
 * address becomes that one, as in host_parse.
 */
bool address_from_socket(const struct sockaddr *socket_address, struct host_address *address);

#endif
