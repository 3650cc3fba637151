/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Why a server of flows cannot be used, and what to do about it. */
#include "flow.h"

#include "error.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>

static int refusal(struct ktrxer_error *err, const struct flow_client_options *o, const struct control_refuse *r)
{
	const struct control_request *q = &o->request;
	char host[KTRXER_ADDR_TEXT], text[KTRXER_UNITS_TEXT];
	const char *cc = r->value < q->cc_count ? q->ccs[r->value] : "?";

	ktrxer_addr_format(&o->to, host);
	switch (r->why) {
	case CONTROL_NO_TOKEN:
		return ktrxer_fail(
			err, -EACCES,
			"%s refuses: the token is not the one of that server; give the one of `ktrxer serve`, "
			"which names its file at its start, by --token-file",
			host);
	case CONTROL_NO_VERSION:
		return ktrxer_fail(err, -EPROTO,
				   "%s refuses: its ktrxer speaks version %" PRIu64
				   " of the control protocol, this one version %d: "
				   "use the same version of ktrxer at both ends",
				   host, r->value, CONTROL_VERSION);
	case CONTROL_CLIENTS:
		return ktrxer_fail(err, -EBUSY,
				   "%s refuses: it serves %" PRIu64
				   " clients at once, and they are there already; try again later, or "
				   "start it with a larger --max-clients",
				   host, r->value);
	case CONTROL_TOO_MANY:
		return ktrxer_fail(err, -EDQUOT,
				   "%s refuses: %u flows are more than its limit of %" PRIu64 " (--max-flows there)",
				   host, q->flows, r->value);
	case CONTROL_TOO_LONG:
		return ktrxer_fail(err, -EDQUOT,
				   "%s refuses: it lets nothing last longer than %s (--max-duration there)", host,
				   ktrxer_format_duration(text, r->value));
	case CONTROL_TOO_FAST:
		return ktrxer_fail(err, -EDQUOT,
				   "%s refuses: the rate of all flows together is above its limit of %s (the server's "
				   "--max-bitrate)",
				   host, ktrxer_format_bitrate(text, r->value));
	case CONTROL_TOO_FINE:
		return ktrxer_fail(err, -EDQUOT,
				   "%s refuses: %u flows can be sampled there each %s at most; give a longer --sample",
				   host, q->flows, ktrxer_format_duration(text, r->value));
	case CONTROL_NO_MEMORY:
		return ktrxer_fail(err, -ENOMEM, "%s refuses: it has no memory for %u flows", host, q->flows);
	case CONTROL_NO_CC:
		return ktrxer_fail(err, -ENOENT,
				   "%s refuses: its kernel has no congestion control '%s'; `sysctl "
				   "net.ipv4.tcp_available_congestion_control` there lists what it has, `modprobe "
				   "tcp_%s` may add it",
				   host, cc, cc);
	case CONTROL_CC_LOCKED:
		return ktrxer_fail(
			err, -EPERM,
			"%s refuses: congestion control '%s' is not allowed to the server; add it to `sysctl "
			"net.ipv4.tcp_allowed_congestion_control` there",
			host, cc);
	case CONTROL_NO_DSCP:
		return ktrxer_fail(err, -EPERM, "%s refuses: DSCP %" PRIu64 " needs `ktrxer serve --dscp-allow`", host,
				   r->value);
	case CONTROL_SILENT:
		return ktrxer_fail(err, -ETIMEDOUT, "%s gave up: it had heard nothing from here for %s", host,
				   ktrxer_format_duration(text, r->value));
	case CONTROL_NO_FAMILY:
		if (r->value == FLOW_TOO_LARGE)
			return ktrxer_fail(err, -EMSGSIZE,
					   "%s refuses: a payload of %u bytes makes packets larger than the MTU of its "
					   "way to here; give "
					   "a smaller --payload",
					   host, o->specs[0].payload_max);
		return ktrxer_fail(err, -EIO, "%s refuses: it could not open a socket for a UDP flow: %s", host,
				   r->value < FLOW_ERRORS ? flow_error_words[r->value] : "no reason given");
	case CONTROL_STOPPING:
		return ktrxer_fail(err, -ECONNABORTED, "%s: the server was stopped", host);
	case CONTROL_OTHER_ADDRESS:
		return ktrxer_fail(err, -EACCES,
				   "%s refuses: UDP packets from here reach it from another address than the control "
				   "connection; it "
				   "sends UDP flows to the address of that connection alone. Bind both to one address "
				   "(--from), or use TCP",
				   host);
	case CONTROL_MALFORMED:
		return ktrxer_fail(err, -EPROTO,
				   "%s refuses: it did not understand what this ktrxer (%s) asks; use the same version "
				   "at both ends",
				   host, ktrxer_version());
	default:
		return ktrxer_fail(err, -EPROTO, "%s refuses, for a reason (%u) that this ktrxer (%s) does not have",
				   host, r->why, ktrxer_version());
	}
}

static int not_connected(struct ktrxer_error *err, const struct flow_client_options *o, int error)
{
	char host[KTRXER_ADDR_TEXT];

	ktrxer_addr_format(&o->to, host);
	if (error == -ECONNREFUSED)
		return ktrxer_fail(err, error,
				   "%s: nothing listens on TCP port %u; start `ktrxer serve` there, or give its --port",
				   host, o->port);
	if (error == -ETIMEDOUT)
		return ktrxer_fail(
			err, error,
			"%s: no answer from TCP port %u; the host is down, or a firewall on the way drops it", host,
			o->port);
	if (error == -EADDRNOTAVAIL)
		return ktrxer_fail(err, error,
				   "no more local ports or no such source address for connections to %s port %u", host,
				   o->port);
	return ktrxer_fail(err, error, "%s port %u: %m", host, o->port);
}

static int gone(struct ktrxer_error *err, const struct flow_client_options *o, int error, bool greeted)
{
	char host[KTRXER_ADDR_TEXT];

	ktrxer_addr_format(&o->to, host);
	if (!greeted && (error == 0 || error == -EPROTO || error == -ECONNRESET))
		return ktrxer_fail(err, -EPROTO,
				   "%s: what listens on TCP port %u is no server of flows (or one that takes no more "
				   "connections); is it "
				   "`ktrxer serve`?",
				   host, o->port);
	if (error == -EBADMSG)
		return ktrxer_fail(err, error,
				   "%s: the server does not know the token of --token-file, or something on the way "
				   "changes its words",
				   host);
	if (error == 0 || error == -ECONNRESET)
		return ktrxer_fail(err, -ECONNRESET,
				   "%s ended the control connection: the server was stopped or restarted", host);
	return ktrxer_fail(err, error, "%s: the control connection broke: %m", host);
}

int flow_failure_describe(struct ktrxer_error *err, const struct flow_client_options *o,
			  const struct flow_failure *failure)
{
	switch (failure->kind) {
	case FLOW_REFUSED_BY_SERVER:
		return refusal(err, o, &failure->refuse);
	case FLOW_NOT_CONNECTED:
		return not_connected(err, o, failure->error);
	default:
		return gone(err, o, failure->error, failure->greeted);
	}
}
