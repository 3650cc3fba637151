/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ssh_sessions.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ANCESTORS_MAX = 32,
	ENVIRONMENT_MAX = 1 << 17, /* of one process; the rest is not read */
};

/* An IPv4 address that a socket of IPv6 calls ::ffff:192.0.2.1 is in IPv4 packets. */
static void unmap(struct ktrxer_addr *addr)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	addr->scope_id = 0; /* rules have none */
	if (addr->family != AF_INET6 || memcmp(addr->bytes, mapped, sizeof mapped) != 0)
		return;
	addr->family = AF_INET;
	memmove(addr->bytes, addr->bytes + 12, 4);
	memset(addr->bytes + 4, 0, 12);
}

static bool port_parse(uint16_t *port, const char *text)
{
	char *end;
	unsigned long number;

	if (*text < '0' || *text > '9')
		return false;
	number = strtoul(text, &end, 10);
	*port = (uint16_t)number;
	return !*end && number && number <= 65535;
}

/*
 * Exactly `count` words between blanks, none longer than an address. By hand: sscanf() alone would be 3 KB of the
 * static program.
 */
static bool words_split(char words[][KTRXER_ADDR_TEXT], int count, const char *text)
{
	static const char blanks[] = " \t\n\v\f\r";

	for (int i = 0; i < count; i++) {
		size_t length;

		text += strspn(text, blanks);
		length = strcspn(text, blanks);
		if (!length || length >= KTRXER_ADDR_TEXT)
			return false;
		memcpy(words[i], text, length);
		words[i][length] = '\0';
		text += length;
	}
	return !text[strspn(text, blanks)];
}

bool ssh_session_parse(struct krx_session *session, const char *text)
{
	char words[4][KTRXER_ADDR_TEXT];

	if (!words_split(words, 4, text) || ktrxer_addr_parse(&session->from, words[0]) ||
	    !port_parse(&session->from_port, words[1]) || ktrxer_addr_parse(&session->to, words[2]) ||
	    !port_parse(&session->to_port, words[3]))
		return false;
	unmap(&session->from);
	unmap(&session->to);
	return session->from.family == session->to.family;
}

static int add(struct krx_session sessions[SSH_SESSIONS_MAX], int count, const struct krx_session *session)
{
	for (int i = 0; i < count; i++)
		if (ktrxer_addr_equal(&sessions[i].from, &session->from) &&
		    ktrxer_addr_equal(&sessions[i].to, &session->to) && sessions[i].from_port == session->from_port &&
		    sessions[i].to_port == session->to_port)
			return count;
	if (count < SSH_SESSIONS_MAX)
		sessions[count++] = *session;
	return count;
}

static int add_text(struct krx_session sessions[SSH_SESSIONS_MAX], int count, const char *text)
{
	struct krx_session session;

	return text && ssh_session_parse(&session, text) ? add(sessions, count, &session) : count;
}

/* A process's parent; 0: it has none, or /proc does not tell. */
static long parent_of(long process)
{
	char path[64], line[512];
	const char *behind;
	size_t length;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/stat", process);
	f = fopen(path, "re");
	if (!f)
		return 0;
	length = fread(line, 1, sizeof line - 1, f);
	fclose(f);
	line[length] = '\0';
	behind = strrchr(line, ')'); /* the name may hold anything */
	/* ") S 1234": the state is one letter */
	return behind && behind[1] == ' ' && behind[2] && behind[3] == ' ' ? strtol(behind + 4, NULL, 10) : 0;
}

static int add_environment(struct krx_session sessions[SSH_SESSIONS_MAX], int count, long process)
{
	static const char name[] = "SSH_CONNECTION=";
	char path[64], *text = malloc(ENVIRONMENT_MAX + 1);
	size_t length;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/environ", process);
	f = text ? fopen(path, "re") : NULL;
	if (f) {
		length = fread(text, 1, ENVIRONMENT_MAX, f);
		fclose(f);
		text[length] = '\0';
		for (const char *at = text; at < text + length; at += strlen(at) + 1)
			if (!strncmp(at, name, sizeof name - 1))
				count = add_text(sessions, count, at + sizeof name - 1);
	}
	free(text);
	return count;
}

static bool addr_of(struct ktrxer_addr *addr, uint16_t *port, const struct sockaddr_storage *from)
{
	memset(addr, 0, sizeof *addr);
	addr->family = (uint8_t)from->ss_family;
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)from;

		memcpy(addr->bytes, &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
	} else if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)from;

		memcpy(addr->bytes, &in->sin6_addr, 16);
		*port = ntohs(in->sin6_port);
	} else {
		return false;
	}
	unmap(addr);
	return true;
}

static int add_socket(struct krx_session sessions[SSH_SESSIONS_MAX], int count, int fd)
{
	struct sockaddr_storage peer, own;
	socklen_t peer_length = sizeof peer, own_length = sizeof own, type_length = sizeof(int);
	struct krx_session session;
	int type = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) || type != SOCK_STREAM ||
	    getpeername(fd, (void *)&peer, &peer_length) || getsockname(fd, (void *)&own, &own_length) ||
	    !addr_of(&session.from, &session.from_port, &peer) || !addr_of(&session.to, &session.to_port, &own))
		return count;
	return add(sessions, count, &session);
}

int ssh_sessions_find(struct krx_session sessions[SSH_SESSIONS_MAX])
{
	int count = add_text(sessions, 0, getenv("SSH_CONNECTION"));
	long process = (long)getpid();

	for (int fd = 0; fd < 3; fd++)
		count = add_socket(sessions, count, fd);
	for (int i = 0; i < ANCESTORS_MAX && process > 1; i++, process = parent_of(process))
		count = add_environment(sessions, count, process);
	return count;
}
