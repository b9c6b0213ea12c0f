/* Which addresses are not of the public internet. */
#ifndef EXECSANDBOX_PROXY_ADDRESS_CLASS_H
#define EXECSANDBOX_PROXY_ADDRESS_CLASS_H

#include "host_pattern.h"

/*
 * What ADDRESS is, in a word ("private", "loopback", …), or NULL where it is a public unicast
 * address.  An address that carries an IPv4 one for a translator or a tunnel is what that
 * one is.
 */
const char *address_class(const struct host_address *address);

#endif
