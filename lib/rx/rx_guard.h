/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rules that would cut off whoever typed them. */
#ifndef KTRXER_LIB_RX_GUARD_H
#define KTRXER_LIB_RX_GUARD_H

#include "rule_match.h"

/* A connection that must not be cut: its packets come from `from`:`from_port` to us. */
struct krx_session {
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port;
};
enum { KRX_SESSIONS_MAX = 16 };

/* "192.0.2.7 50022 192.0.2.1 22", as sshd sets SSH_CONNECTION. */
bool krx_session_parse(struct krx_session *session, const char *text);
/* Those that this process hangs on: SSH_CONNECTION, its own and its ancestors' (sudo takes it out); standard streams that are TCP. */
int krx_sessions_find(struct krx_session sessions[KRX_SESSIONS_MAX]);

/* -EPERM: a rule drops everything, or what a session lives by; err names the rule. */
int krx_guard(const struct krx_ruleset *rules, const struct krx_session *sessions, int count, struct ktrxer_error *err);

#endif
