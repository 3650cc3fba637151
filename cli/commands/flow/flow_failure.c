/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Why a server of flows cannot be used, and what to do about it. */
#include "flow.h"

#include "error.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>

int flow_cc_refused(struct ktrxer_error *err, int rc, const char *name, bool there)
{
	if (rc == -ENOENT)
		return ktrxer_fail(err, rc,
				   "%s kernel has no congestion control '%s'; `sysctl "
				   "net.ipv4.tcp_available_congestion_control` %slists what it has, `modprobe tcp_%s` "
				   "may add it",
				   there ? "its" : "this", name, there ? "there " : "", name);
	return ktrxer_fail(err, rc,
			   "congestion control '%s' is not allowed to %s; add it to `sysctl "
			   "net.ipv4.tcp_allowed_congestion_control`%s",
			   name, there ? "the server" : "this user", there ? " there" : ", or run as root");
}

static int refusal_why(struct ktrxer_error *err, const struct flow_client_options *o, const struct control_refuse *r)
{
	const struct control_request *q = &o->request;
	char text[KTRXER_UNITS_TEXT];
	const char *cc = r->value < q->cc_count ? q->ccs[r->value] : "?";

	switch (r->why) {
	case CONTROL_NO_TOKEN:
		return ktrxer_fail(err, -EKEYREJECTED,
				   "the token is not the one of that server; give the one of `ktrxer serve`, "
				   "which names its file at its start, by --token-file");
	case CONTROL_NO_VERSION:
		return ktrxer_fail(err, -EPROTO,
				   "its ktrxer speaks version %" PRIu64
				   " of the control protocol, this one version %d: "
				   "use the same version of ktrxer at both ends",
				   r->value, CONTROL_VERSION);
	case CONTROL_CLIENTS:
		return ktrxer_fail(err, -EBUSY,
				   "it has as many clients as it serves at once, %" PRIu64
				   " (--max-clients there); try again later",
				   r->value);
	case CONTROL_TOO_MANY:
		return ktrxer_fail(err, -EDQUOT, "%u flows are more than its limit of %" PRIu64 " (--max-flows there)",
				   q->flows, r->value);
	case CONTROL_TOO_LONG:
		return ktrxer_fail(err, -EDQUOT, "it limits the duration to %s (--max-duration there)",
				   ktrxer_format_duration(text, r->value));
	case CONTROL_TOO_FAST:
		return ktrxer_fail(err, -EDQUOT,
				   "the rate of all flows together is above its limit of %s (the server's "
				   "--max-bitrate)",
				   ktrxer_format_bitrate(text, r->value));
	case CONTROL_TOO_FINE:
		return ktrxer_fail(err, -EDQUOT,
				   "%u flows can be sampled there each %s at most; give a longer --sample-interval",
				   q->flows, ktrxer_format_duration(text, r->value));
	case CONTROL_NO_MEMORY:
		return ktrxer_fail(err, -ENOMEM, "it has no memory for %u flows", q->flows);
	case CONTROL_NO_CC:
		return flow_cc_refused(err, -ENOENT, cc, true);
	case CONTROL_CC_LOCKED:
		return flow_cc_refused(err, -EPERM, cc, true);
	case CONTROL_NO_DSCP:
		return ktrxer_fail(err, -EPERM, "it does not allow DSCP %" PRIu64 " (--dscp-allow there)", r->value);
	case CONTROL_NO_FAMILY:
		if (r->value == FLOW_TOO_LARGE)
			return ktrxer_fail(
				err, -EMSGSIZE,
				"a payload of %u bytes makes packets larger than the MTU of the path down; give "
				"a smaller --payload",
				o->specs[0].payload_max);
		return ktrxer_fail(err, -EIO, "it could not open a socket for a UDP flow: %s",
				   r->value < FLOW_ERRORS ? flow_error_words[r->value] : "no reason given");
	case CONTROL_OTHER_ADDRESS:
		return ktrxer_fail(err, -EACCES,
				   "UDP packets from here reach it from another address than the control "
				   "connection, and it sends UDP flows to the latter alone. "
				   "Bind both to one address (--from), or use TCP");
	case CONTROL_MALFORMED:
		return ktrxer_fail(err, -EPROTO,
				   "it does not accept a request of this ktrxer (%s); use the same version "
				   "at both ends",
				   ktrxer_version());
	default:
		return ktrxer_fail(err, -EPROTO, "its reason (%u) is one that this ktrxer (%s) does not have", r->why,
				   ktrxer_version());
	}
}

static int refusal(struct ktrxer_error *err, const struct flow_client_options *o, const struct control_refuse *r)
{
	char host[KTRXER_ADDR_TEXT], text[KTRXER_UNITS_TEXT];
	struct ktrxer_error why;

	ktrxer_addr_format(&o->to, host);
	if (r->why == CONTROL_SILENT)
		return ktrxer_fail(err, -ETIMEDOUT, "%s ended the session: nothing came from here for %s", host,
				   ktrxer_format_duration(text, r->value));
	if (r->why == CONTROL_STOPPING)
		return ktrxer_fail(err, -ECONNABORTED, "%s: the server was stopped", host);
	refusal_why(&why, o, r);
	return ktrxer_fail(err, why.code, "%s refuses: %s", host, why.text);
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
				   "%s: the program on TCP port %u is no server of flows, takes no more connections, "
				   "or lost packets delayed the greeting too long; is it `ktrxer serve`?",
				   host, o->port);
	if (error == -EBADMSG)
		return ktrxer_fail(err, error,
				   "%s: the server has another token than --token-file, or a device on the path "
				   "changes the messages",
				   host);
	if (error == -ECONNRESET)
		return ktrxer_fail(err, error,
				   "%s: the control connection was reset: the server was stopped or restarted, or a "
				   "device on the path reset it",
				   host);
	if (error == 0)
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
