/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rules that would end the SSH session in which they were typed. */
#include "cm.h"
#include "rx_guard.h"
#include "ssh_sessions.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void reads_what_sshd_sets(void **state)
{
	static const char *const bad[] = { "",
					   "192.0.2.7",
					   "192.0.2.7 50022 192.0.2.1",
					   "192.0.2.7 50022 192.0.2.1 22 x",
					   "host 50022 192.0.2.1 22",
					   "192.0.2.7 0 192.0.2.1 22",
					   "192.0.2.7 65536 192.0.2.1 22",
					   "192.0.2.7 -1 192.0.2.1 22",
					   "192.0.2.7 1x 192.0.2.1 22",
					   "192.0.2.7 1 2001:db8::1 22" };
	struct krx_session s;
	char text[KTRXER_ADDR_TEXT];

	(void)state;
	assert_true(ssh_session_parse(&s, "192.0.2.7 50022 192.0.2.1 22"));
	assert_int_equal(s.from_port, 50022);
	assert_int_equal(s.to_port, 22);
	assert_string_equal(ktrxer_addr_format(&s.from, text), "192.0.2.7");
	assert_string_equal(ktrxer_addr_format(&s.to, text), "192.0.2.1");
	assert_true(ssh_session_parse(&s, "::ffff:192.0.2.7 1 ::ffff:192.0.2.1 65535"));
	assert_int_equal(s.from.family, AF_INET);
	assert_string_equal(ktrxer_addr_format(&s.from, text), "192.0.2.7");
	assert_true(ssh_session_parse(&s, "2001:db8::7 1 2001:db8::1 22"));
	assert_int_equal(s.to.family, AF_INET6);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(ssh_session_parse(&s, bad[i]));
}

static int guard(const char *const *texts, const char *session, struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	struct krx_rule rules[8];
	struct krx_session s;
	struct krx_ruleset *set;
	int count = 0, rc;

	for (; texts[count]; count++)
		assert_int_equal(krx_rule_parse(&rules[count], texts[count], NULL), 0);
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), count, NULL), 0);
	if (session)
		assert_true(ssh_session_parse(&s, session));
	options.sessions = &s;
	options.session_count = session ? 1 : 0;
	rc = krx_guard(set, &options, err);
	krx_ruleset_free(set);
	return rc;
}

static void refuses_what_drops_everything(void **state)
{
	static const char *const bad[][3] = {
		{ "drop any from any to any" },
		{ "capture+drop any from any to any prio 9" },
		{ "drop any from 0.0.0.0/0 to any" },
		{ "drop any from any to ::/0" },
		{ "forward tcp from any to any:22", "drop any from any to any" },
	};
	static const char *const good[][3] = {
		{ "capture any from any to any" }, { "forward any from any to any" },
		{ "drop udp from any to any" },    { "drop any from any to 10.0.0.0/8" },
		{ "drop any from any to any:9" },
	};
	struct ktrxer_error err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(guard(bad[i], NULL, &err), -EPERM);
		assert_non_null(strstr(err.text, "drops everything"));
		assert_non_null(strstr(err.text, "`force`"));
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(guard(good[i], NULL, &err), 0);
}

static void refuses_what_cuts_the_session(void **state)
{
	static const char session[] = "192.0.2.7 50022 192.0.2.1 22";
	static const char *const bad[][4] = {
		{ "drop tcp from any to any" },
		{ "drop tcp from any to any:22" },
		{ "capture+drop any from 192.0.2.0/24 to any" },
		{ "drop tcp from 192.0.2.7:50022 to 192.0.2.1:22" },
		{ "drop tcp from any to any prio 1", "forward tcp from any to any:22 prio 2" },
	};
	static const char *const good[][4] = {
		{ "drop udp from any to any" },
		{ "drop tcp from any to any:23" },
		{ "drop tcp from 192.0.2.7:50023 to 192.0.2.1:22" },
		{ "drop tcp from 192.0.2.1:22 to 192.0.2.7:50022" }, /* the other way: what arrives here is not that */
		{ "drop tcp from any to any prio 2", "forward tcp from any to any:22 prio 1" },
		{ "capture tcp from any to any:22", "drop tcp from any to any" },
	};
	struct ktrxer_error err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(guard(bad[i], session, &err), -EPERM);
		assert_non_null(strstr(err.text, "this session's own connection"));
		assert_non_null(strstr(err.text, "192.0.2.7 port 50022"));
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(guard(good[i], session, &err), 0);
}

static bool is_found(const char *text)
{
	struct krx_session sessions[SSH_SESSIONS_MAX], want;
	int count = ssh_sessions_find(sessions);

	assert_true(ssh_session_parse(&want, text));
	for (int i = 0; i < count; i++)
		if (sessions[i].from_port == want.from_port && sessions[i].to_port == want.to_port &&
		    ktrxer_addr_equal(&sessions[i].from, &want.from) && ktrxer_addr_equal(&sessions[i].to, &want.to))
			return true;
	return false;
}

/* sudo takes the variable away: then an ancestor still has it. argv[1] asks the child that this test starts. */
static const char *self;

/* The status of a shell whose child is this program with that one argument, and without SSH_CONNECTION. */
static int status_below_a_shell(const char *argument)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		/* This shell has it; what it starts has not. */
		execl("/bin/sh", "sh", "-c", "env -u SSH_CONNECTION \"$0\" \"$1\"; exit $?", self, argument,
		      (char *)NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void finds_the_session_of_an_ancestor(void **state)
{
	int status;

	(void)state;
	if (status_below_a_shell("--is-here") != 42)
		cm_skip("a shell cannot start this program: it is for another machine, and emulated");
	setenv("SSH_CONNECTION", "198.51.100.7 50001 198.51.100.1 22", 1);
	assert_true(is_found("198.51.100.7 50001 198.51.100.1 22"));
	status = status_below_a_shell("--is-found");
	unsetenv("SSH_CONNECTION");
	assert_int_equal(status, 0);
	assert_false(is_found("198.51.100.7 50001 198.51.100.1 22"));
}

static void finds_a_standard_stream_that_is_tcp(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), saved = dup(0),
	    server;
	char text[128];
	struct sockaddr_in own;

	(void)state;
	assert_true(listener >= 0 && client >= 0 && saved >= 0);
	assert_int_equal(bind(listener, (void *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (void *)&address, &length), 0);
	assert_int_equal(connect(client, (void *)&address, sizeof address), 0);
	server = accept(listener, NULL, NULL);
	assert_int_equal(getsockname(client, (void *)&own, &length), 0);
	snprintf(text, sizeof text, "127.0.0.1 %u 127.0.0.1 %u", ntohs(own.sin_port), ntohs(address.sin_port));
	assert_false(is_found(text));
	assert_int_equal(dup2(server, 0), 0);
	assert_true(is_found(text));
	assert_int_equal(dup2(saved, 0), 0);
	close(server);
	close(client);
	close(listener);
	close(saved);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_sshd_sets),
		cmocka_unit_test(refuses_what_drops_everything),
		cmocka_unit_test(refuses_what_cuts_the_session),
		cmocka_unit_test(finds_the_session_of_an_ancestor),
		cmocka_unit_test(finds_a_standard_stream_that_is_tcp),
	};

	self = argv[0];
	if (argc == 2 && !strcmp(argv[1], "--is-here"))
		return 42;
	if (argc == 2 && !strcmp(argv[1], "--is-found"))
		return is_found("198.51.100.7 50001 198.51.100.1 22") ? 0 : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
