/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens the server of `serve`: addresses, secrets, sockets. */
#include "base_limits.h"
#include "serve.h"

#include "dscp.h"
#include "error.h"
#include "limiter.h"
#include "serve_control.h"
#include "token.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

static int passed_plan(struct server *s, struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;

	if (o->bind.count || o->v4 || o->v6)
		return ktrxer_fail(err, -EINVAL,
				   "--bind, -4 and -6 choose addresses, but the service manager has passed sockets "
				   "(LISTEN_FDS=%d); choose the addresses in the .socket unit",
				   s->passed.count);
	for (int i = 0; i < s->passed.count; i++) {
		const struct passed_socket *p = &s->passed.sockets[i];

		if (!p->udp || p->port != o->port)
			continue;
		if (s->addr_count == KTRXER_SERVE_ADDRESSES)
			return ktrxer_fail(err, -EINVAL, "sockets of more than %d addresses were passed",
					   KTRXER_SERVE_ADDRESSES);
		s->addrs[s->addr_count++] = p->addr;
	}
	return passed_sockets_check(&s->passed, (uint16_t)o->port, (uint16_t)o->stamp_port, o->max_clients, err);
}

/* 0: the server opens its sockets. */
static int passed_fd(const struct server *s, const struct ktrxer_addr *addr, uint16_t port, bool udp)
{
	const struct passed_socket *p = KTRXER_SERVER_EXTRAS ? passed_sockets_find(&s->passed, addr, port, udp) : NULL;

	return p ? p->fd : 0;
}

static int addresses_plan(struct server *s, struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;
	int rc = 0;

	if (!o->v4 && !o->v6 && KTRXER_SERVER_EXTRAS)
		rc = passed_sockets_take(&s->passed, err);
	if (rc < 0)
		return rc;
	if (KTRXER_SERVER_EXTRAS && s->passed.count)
		return passed_plan(s, err);
	if (o->bind.count > KTRXER_SERVE_ADDRESSES)
		return ktrxer_fail(err, -EINVAL, "at most %d times --bind", KTRXER_SERVE_ADDRESSES);
	for (int i = 0; i < o->bind.count; i++) {
		struct ktrxer_addr *addr = &s->addrs[s->addr_count++];

		if (ktrxer_addr_parse(addr, o->bind.items[i]) < 0)
			return ktrxer_fail(err, -EINVAL,
					   "--bind %s: not an address of IPv4 or IPv6 (names are not looked up)",
					   o->bind.items[i]);
	}
	if (!o->bind.count) {
		if (!o->v6)
			s->addrs[s->addr_count++].family = AF_INET;
		if (!o->v4)
			s->addrs[s->addr_count++].family = AF_INET6;
	}
	return 0;
}

static int secrets_plan(struct server *s, struct reflector_options *r, struct stamp_keys *keys,
			struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;
	int rc;

	if ((rc = secret_stamp_keys_read(keys, o->auth_key_file, o->tlv_key_file, err)) < 0)
		return rc;
	r->auth_key = o->auth_key_file ? &keys->auth : NULL;
	r->tlv_key = o->tlv_key_file ? &keys->tlv : NULL;
	s->token_length = secret_token_read(o->token_file, s->token, err);
	if (s->token_length == -ENOENT)
		return ktrxer_fail(
			err, -ENOENT,
			"--token-file %s: No such file or directory; make it: `(umask 077; head -c 16 /dev/urandom | "
			"base64 >%s)`",
			o->token_file, o->token_file);
	if (s->token_length != 0 || !o->max_clients)
		return s->token_length < 0 ? s->token_length : 0;
	s->token_length = token_keep(s->token_path, sizeof s->token_path, o->port, s->token, err);
	return s->token_length < 0 ? s->token_length : 0;
}

static int dscp_plan(struct server *s, struct ktrxer_error *err)
{
	const char *at = s->o->dscp_allow;

	s->dscp_granted = at ? REFLECTOR_DSCP_DEFAULT : REFLECTOR_DSCP_TRUSTED;
	while (at) {
		uint8_t dscp;
		int rc = dscp_next(&dscp, &at, err);

		if (rc < 0)
			return rc;
		s->dscp_granted |= 1ULL << dscp;
	}
	return 0;
}

static int sockets_open(struct server *s, struct ktrxer_error *err)
{
	for (int i = 0; i < s->addr_count; i++)
		for (int second = 0; second <= (s->o->stamp_port && s->o->stamp_port != s->o->port); second++) {
			struct serve_udp_options u = { .bind = s->addrs[i],
						       .reflector = s->reflector,
						       .port = (uint16_t)(second ? s->o->stamp_port : s->o->port) };
			int rc;

			u.claim = second || !s->o->max_clients ? NULL : serve_control_claim;
			u.trusted = s->o->max_clients ? serve_control_trusted : NULL;
			u.context = s->control;
			u.passed_fd = passed_fd(s, &u.bind, u.port, true);
			if (KTRXER_SERVER_EXTRAS && s->passed.count && !u.passed_fd)
				continue; /* not each address has the second port */
			rc = serve_udp_open(&s->sockets[s->socket_count], s->loop, &u, err);

			/* A kernel without IPv6 is no fault when no option requires IPv6. */
			if (rc == -EAFNOSUPPORT && !s->o->bind.count && s->addr_count > 1)
				continue;
			if (rc < 0)
				return rc;
			s->socket_count++;
			if (!second && s->o->max_clients &&
			    (rc = serve_control_listen(s->control, &s->addrs[i], u.port,
						       passed_fd(s, &u.bind, u.port, false), err)) < 0)
				return rc;
		}
	return s->socket_count ? 0 : ktrxer_fail(err, -EAFNOSUPPORT, "this kernel has neither IPv4 nor IPv6");
}

/* As many descriptors as flows may need, if this process may have them. */
static void descriptors_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

static int control_open_all(struct server *s, uint64_t secret, struct ktrxer_error *err)
{
	struct hmac_key token;
	struct serve_control_options c = { .token = &token,
					   .max_clients = (uint32_t)s->o->max_clients,
					   .max_flows = (uint32_t)s->o->max_flows,
					   .max_ns = s->o->max_ns,
					   .max_bps = s->o->max_bps,
					   .dscp_granted = s->dscp_granted,
					   .secret = limiter_mix(secret),
					   .ended = KTRXER_SERVER_EXTRAS ? client_log_flows : NULL,
					   .context = &s->log };
	int rc;

	descriptors_allow();
	hmac_key_set(&token, s->token, (size_t)s->token_length);
	rc = serve_control_new(&s->control, s->loop, &c, err);
	secret_forget(&token, sizeof token);
	return rc;
}

int server_open(struct server *s, struct ktrxer_error *err)
{
	const struct serve_options *o = s->o;
	struct reflector_options r = { .stateless = o->stateless,
				       .ptp = o->ptp,
				       .rate = (uint32_t)o->rate,
				       .burst = (uint32_t)o->burst,
				       .max_bps = o->answer_bps,
				       .own_ports = { (uint16_t)o->port, (uint16_t)o->stamp_port },
				       .ended = KTRXER_SERVER_EXTRAS ? client_log_stamp : NULL,
				       .context = &s->log };
	struct stamp_keys keys;
	int rc = addresses_plan(s, err);

	if (rc == 0)
		rc = dscp_plan(s, err);
	r.dscp_trusted = s->dscp_granted;
	r.dscp_granted = o->dscp_allow ? s->dscp_granted : REFLECTOR_DSCP_DEFAULT;
	if (rc == 0)
		rc = secrets_plan(s, &r, &keys, err);
	if (rc == 0 && getrandom(&r.secret, sizeof r.secret, 0) != sizeof r.secret)
		rc = ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	if (rc == 0 && ((KTRXER_SERVER_EXTRAS && client_log_open(&s->log, s->cli, limiter_mix(r.secret ^ 1)) < 0) ||
			reflector_new(&s->reflector, &r) < 0 || loop_new(&s->loop) < 0))
		rc = ktrxer_fail(err, -ENOMEM, "no memory for the server");
	secret_forget(&keys, sizeof keys);
	if (rc == 0)
		rc = control_open_all(s, r.secret, err);
	return rc < 0 ? rc : sockets_open(s, err);
}
