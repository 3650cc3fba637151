/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rx_guard.h"

#include "error.h"
#include "options.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* The end of the first version of struct krx_session. */
#define SESSION_MIN (offsetof(struct krx_session, to_port) + sizeof(uint16_t))

static bool drops(enum krx_op op)
{
	return op == KRX_DROP || op == KRX_CAPTURE_DROP;
}

static bool side_is_everybody(const struct ktrxer_addr *addr, uint8_t prefix)
{
	return !addr->family || !prefix;
}

static bool means_everything(const struct krx_rule *rule)
{
	return !rule->proto && !rule->from_port && !rule->to_port &&
	       side_is_everybody(&rule->from, rule->from_prefix) && side_is_everybody(&rule->to, rule->to_prefix);
}

int krx_guard(const struct krx_ruleset *rules, const struct krx_options *options, struct ktrxer_error *err)
{
	char text[KRX_RULE_TEXT], address[KTRXER_ADDR_TEXT];

	for (int i = 0; i < krx_ruleset_count(rules); i++) {
		const struct krx_rule *rule = krx_ruleset_rule(rules, i);

		if (drops(rule->op) && means_everything(rule))
			return ktrxer_fail(err, -EPERM,
					   "rule '%.80s' drops everything that arrives, and cuts off every session "
					   "over the network; set "
					   "`force` if that is meant",
					   krx_rule_format(rule, text));
	}
	for (uint32_t i = 0; i < options->session_count; i++) {
		struct ktrxer_packet_view view = { .proto = KTRXER_TCP, .first_fragment = true, .ports = true };
		struct krx_session s;
		int found = ktrxer_options_copy(&s, sizeof s,
						(const uint8_t *)options->sessions + i * options->session_size,
						options->session_size, SESSION_MIN, "krx_session", err);

		if (found)
			return found;
		view.version = s.from.family == AF_INET ? 4 : 6;
		view.from = s.from;
		view.to = s.to;
		view.from_port = s.from_port;
		view.to_port = s.to_port;
		found = krx_ruleset_match(rules, &view);
		if (found >= 0 && drops(krx_ruleset_rule(rules, found)->op))
			return ktrxer_fail(err, -EPERM,
					   "rule '%.80s' would cut off this session's own connection (from %s port "
					   "%u); put a forward rule "
					   "for it before, or set `force`",
					   krx_rule_format(krx_ruleset_rule(rules, found), text),
					   ktrxer_addr_format(&s.from, address), s.from_port);
	}
	return 0;
}
