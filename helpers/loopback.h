/* Sockets at the addresses of a request's proxies. */
#ifndef EXECSANDBOX_LOOPBACK_H
#define EXECSANDBOX_LOOPBACK_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* What ADDRESS (as in struct request_proxy) and PORT are to the kernel. Returns the length. */
socklen_t loopback_address(const uint8_t *address, uint16_t port, struct sockaddr_storage *out);

/* A nonblocking stream socket for such an address. Returns it, or -1 with errno. */
int loopback_socket(const struct sockaddr_storage *address);

/* As text, with the port, in TEXT. Returns TEXT. */
enum { LOOPBACK_TEXT = INET6_ADDRSTRLEN + 16 };
const char *loopback_text(const uint8_t *address, uint16_t port, char text[LOOPBACK_TEXT]);

#endif
