/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli.h"

#include "fields_common.h"
#include "error.h"
#include "units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

enum { KTRXER_FLOOD_PPS = 10000 /* a higher rate towards public addresses needs --flood */ };

enum { HOST_MAX = 253 + 1 + 16 }; /* the longest DNS name, and %eth0 */

static const char *family_name(int family)
{
	return family == AF_INET6 ? "IPv6" : "IPv4";
}

static int check_name(const char *host, struct ktrxer_error *err)
{
	const char *colon = strchr(host, ':');

	if (!*host)
		return ktrxer_fail(err, -EINVAL, "the host name is empty");
	if (host[0] == '-')
		return ktrxer_fail(err, -EINVAL, "'%.64s' is not a host name: it begins with '-', as options do", host);
	if (strlen(host) > HOST_MAX)
		return ktrxer_fail(err, -EINVAL, "'%.48s...' is not a host name: it is longer than %d characters", host,
				   HOST_MAX);
	if (colon && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")])
		return ktrxer_fail(err, -EINVAL,
				   "'%.64s': a host has no port; where a command has one, it is given by --port", host);
	if (host[0] == '[')
		return ktrxer_fail(err, -EINVAL,
				   "'%.64s': write an address of IPv6 without brackets, and its port after --port",
				   host);
	for (const char *c = host; *c; c++)
		if ((unsigned char)*c <= 0x20 || *c == 0x7f || *c == '/')
			return ktrxer_fail(err, -EINVAL,
					   "'%.64s' is not a host name: it has a blank, a slash or a control character",
					   host);
	return 0;
}

static void addr_from_socket(struct ktrxer_addr *addr, const struct sockaddr *from)
{
	*addr = (struct ktrxer_addr){ .family = (uint8_t)from->sa_family };
	if (from->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, from, sizeof in);
		memcpy(addr->bytes, &in.sin_addr, 4);
	} else {
		struct sockaddr_in6 in6;

		memcpy(&in6, from, sizeof in6);
		memcpy(addr->bytes, &in6.sin6_addr, 16);
		addr->scope_id = IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? in6.sin6_scope_id : 0;
	}
}

/* Returns the number of addresses that were found, up to `max`. */
static int look_up(const char *host, int family, struct ktrxer_addr *addrs, int max, struct ktrxer_error *err)
{
	/* AI_ADDRCONFIG would hide "localhost" in a namespace with loopback only. */
	const bool digits = !host[strspn(host, "0123456789.")]; /* no name of DNS: a name server is not asked */
	const struct addrinfo hints = { .ai_flags = digits ? AI_NUMERICHOST : 0,
					.ai_family = family ? family : AF_UNSPEC,
					.ai_socktype = SOCK_DGRAM };
	struct addrinfo *found = NULL, *it;
	int ret = getaddrinfo(host, NULL, &hints, &found), count = 0;

	if (ret && digits)
		return ktrxer_fail(err, -EINVAL, "'%.64s' is no address of IPv4: four numbers of 0 to 255", host);
	if (ret == EAI_AGAIN)
		return ktrxer_fail(err, -EAGAIN,
				   "'%.64s': the name server does not answer; try again, or give an address", host);
	if (ret == EAI_SYSTEM)
		return ktrxer_fail(err, -errno, "'%.64s': cannot be looked up: %s", host, strerror(errno));
	if (ret == EAI_MEMORY)
		return ktrxer_fail(err, -ENOMEM, "'%.64s': cannot be looked up: out of memory", host);
	if (ret)
		return ktrxer_fail(err, -ENOENT, "'%.64s': no such host%s%s; check the spelling, or give an address",
				   host, family ? " with an address of " : "", family ? family_name(family) : "");
	for (it = found; it && count < max; it = it->ai_next)
		if (it->ai_family == AF_INET || it->ai_family == AF_INET6)
			addr_from_socket(&addrs[count++], it->ai_addr);
	freeaddrinfo(found);
	return count ? count : ktrxer_fail(err, -ENOENT, "'%.64s' has no address of IPv4 or IPv6", host);
}

static int resolve(const char *host, const struct ktrxer_addr *from, bool v4, bool v6, struct ktrxer_addr *addrs,
		   int max, struct ktrxer_error *err)
{
	const int family = v4 ? AF_INET : v6 ? AF_INET6 : 0;
	struct ktrxer_addr parsed = { 0 };
	int ret = check_name(host, err);

	if (ret)
		return ret;
	if (ktrxer_addr_parse(&parsed, host))
		return look_up(host, family ? family : from->family, addrs, max, err);
	if (family && parsed.family != family)
		return ktrxer_fail(err, -EAFNOSUPPORT, "'%.64s' is an address of %s, but -%c was asked for", host,
				   family_name(parsed.family), family == AF_INET6 ? '6' : '4');
	addrs[0] = parsed;
	return 1;
}

int cli_resolve_all(const char *host, const struct ktrxer_addr *from, bool v4, bool v6, struct ktrxer_addr *addrs,
		    int max, struct ktrxer_error *err)
{
	int rc = resolve(host, from, v4, v6, addrs, max, err);

	if (rc > 0 && from->family && from->family != addrs[0].family)
		rc = ktrxer_fail(err, -EINVAL, "--from is not of the same family as %s", host);
	return rc;
}

int cli_resolve(const char *host, const struct ktrxer_addr *from, bool v4, bool v6, struct ktrxer_addr *addr,
		struct ktrxer_error *err)
{
	const int rc = cli_resolve_all(host, from, v4, v6, addr, 1, err);

	return rc < 0 ? rc : 0;
}

int cli_guard_rate(const struct ktrxer_addr *to, const struct opt_rate *rate, bool flood, struct ktrxer_error *err)
{
	char text[KTRXER_ADDR_TEXT];
	bool slow = rate->num && (rate->num / rate->den < KTRXER_FLOOD_PPS ||
				  (rate->num / rate->den == KTRXER_FLOOD_PPS && rate->num % rate->den == 0));

	if (flood || slow || ktrxer_addr_is_local_use(to))
		return 0;
	return ktrxer_fail(err, -EPERM,
			   "%s is not a private address: give a rate of at most %d a second, or --flood if its owner "
			   "agrees",
			   ktrxer_addr_format(to, text), KTRXER_FLOOD_PPS);
}

void json_target(struct json *json, const char *host, const struct ktrxer_path *path)
{
	char address[KTRXER_ADDR_TEXT];

	target_target(json, host);
	target_to(json, ktrxer_addr_format(&path->to, address));
	target_from(json, ktrxer_addr_format(&path->source, address));
	target_device(json, path->device.name);
}
