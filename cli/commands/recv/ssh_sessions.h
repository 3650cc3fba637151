/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The connections over which this command was typed: rules must not cut them (krx_options.sessions). */
#ifndef KTRXER_CLI_SSH_SESSIONS_H
#define KTRXER_CLI_SSH_SESSIONS_H

#include <ktrxer.h>

enum { SSH_SESSIONS_MAX = 16 };

/* "192.0.2.7 50022 192.0.2.1 22", as sshd sets SSH_CONNECTION. */
bool ssh_session_parse(struct krx_session *session, const char *text);
/*
 * SSH_CONNECTION of this process and of its ancestors (sudo removes the variable), and standard streams that are TCP.
 * Returns how many.
 */
int ssh_sessions_find(struct krx_session sessions[SSH_SESSIONS_MAX]);

#endif
