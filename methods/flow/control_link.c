/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control_link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 8, PIECE = 2048 };

static void link_ready(struct loop_source *source, uint32_t events);

int control_link_open(struct control_link *link, struct loop *loop, int fd)
{
	int rc;

	link->loop = loop;
	link->source.fd = fd;
	link->source.ready = link_ready;
	link->heard_ns = ktrxer_now_ns();
	if (!link->most)
		link->most = CONTROL_FIRST_MAX;
	if (!link->out_limit)
		link->out_limit = 2 * CONTROL_BODY_MAX;
	/* The socket becomes writable when it is connected, or fails. */
	rc = loop_watch(loop, &link->source, EPOLLIN);
	if (rc < 0)
		close(fd);
	link->source.fd = rc < 0 ? -1 : fd;
	return rc;
}

void control_link_close(struct control_link *link)
{
	if (link->source.fd >= 0 && link->loop) {
		loop_unwatch(link->loop, &link->source);
		close(link->source.fd);
	}
	link->source.fd = -1;
	free(link->in);
	free(link->out);
	link->in = link->out = NULL;
	link->in_used = link->in_size = link->out_at = link->out_used = link->out_size = 0;
	secret_forget(&link->keys, sizeof link->keys);
}

static bool room_make(uint8_t **buffer, uint32_t *size, uint32_t wanted)
{
	uint32_t larger = *size ? *size : 512;
	uint8_t *moved;

	if (wanted <= *size)
		return true;
	while (larger < wanted)
		larger *= 2;
	moved = realloc(*buffer, larger);
	if (!moved)
		return false;
	*buffer = moved;
	*size = larger;
	return true;
}

uint32_t control_link_waiting(const struct control_link *link)
{
	return link->out_used - link->out_at;
}

/* Sends what the socket takes now. The socket reports an error once, to the first call: it is kept for the reader. */
void control_link_push(struct control_link *link)
{
	link->held = false;
	while (control_link_waiting(link)) {
		ssize_t n = send(link->source.fd, link->out + link->out_at, control_link_waiting(link),
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR && !link->error)
			link->error = -errno;
		if (n <= 0)
			break;
		link->out_at += (uint32_t)n;
	}
	if (!control_link_waiting(link))
		link->out_at = link->out_used = 0;
	loop_watch(link->loop, &link->source, control_link_waiting(link) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static uint8_t *out_room(struct control_link *link, uint32_t bytes)
{
	if (link->source.fd < 0 || control_link_waiting(link) + bytes > link->out_limit)
		return NULL;
	if (link->out_at) {
		memmove(link->out, link->out + link->out_at, control_link_waiting(link));
		link->out_used -= link->out_at;
		link->out_at = 0;
	}
	if (!room_make(&link->out, &link->out_size, link->out_used + bytes))
		return NULL;
	return link->out + link->out_used;
}

int control_link_bytes(struct control_link *link, const uint8_t *data, uint32_t length)
{
	uint8_t *at = out_room(link, length);

	if (!at)
		return -ENOBUFS;
	memcpy(at, data, length);
	link->out_used += length;
	control_link_push(link);
	return 0;
}

uint8_t *control_link_begin(struct control_link *link, uint32_t most)
{
	uint8_t *at = out_room(link, CONTROL_HEAD + most + CONTROL_MAC);

	return at ? at + CONTROL_HEAD : NULL;
}

void control_link_send(struct control_link *link, uint8_t type, uint32_t length)
{
	link->out_used += control_seal(&link->keys, link->out + link->out_used, type, length);
	if (!link->held)
		control_link_push(link);
}

void control_link_send_unsealed(struct control_link *link, uint8_t type, uint32_t length)
{
	link->out_used += control_seal_none(link->out + link->out_used, type, length);
	control_link_push(link);
}

void control_link_say(struct control_link *link, uint8_t type)
{
	if (control_link_begin(link, 0))
		control_link_send(link, type, 0);
}

static bool fail(struct control_link *link, int error)
{
	link->closed(link, error);
	return false;
}

/* False: the link is gone. */
static bool deliver(struct control_link *link)
{
	uint32_t at = 0;

	while (link->in_used - at) {
		const bool keyed = link->keyed;
		struct control_frame frame;
		uint32_t taken = CONTROL_PREFACE;
		int rc;

		if (!keyed && link->in_used - at < CONTROL_PREFACE)
			break;
		if (keyed) {
			rc = control_open(&link->keys, link->in + at, link->in_used - at, link->most, &frame, &taken);
			if (rc < 0)
				return fail(link, rc);
			if (rc == 0)
				break;
			link->frames++;
		}
		if (keyed ? !link->frame(link, &frame) : !link->preface(link, link->in + at))
			return false;
		at += taken;
	}
	if (at) {
		link->in_used -= at;
		memmove(link->in, link->in + at, link->in_used);
	}
	return true;
}

bool control_link_feed(struct control_link *link, const uint8_t *data, uint32_t length)
{
	if (!room_make(&link->in, &link->in_size, link->in_used + length))
		return fail(link, -ENOMEM);
	memcpy(link->in + link->in_used, data, length);
	link->in_used += length;
	return deliver(link);
}

/* False: the link is gone. */
static bool pull(struct control_link *link)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t piece[PIECE];
		ssize_t n = recv(link->source.fd, piece, sizeof piece, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n <= 0)
			return fail(link, n < 0 ? -errno : link->error == -EPIPE ? 0 : link->error);
		link->heard_ns = ktrxer_now_ns();
		if (!control_link_feed(link, piece, (uint32_t)n))
			return false;
		if (n < PIECE || loop_share_used(link->loop))
			return true;
	}
	return true;
}

/* The answers to all frames of one turn leave with one call. */
static bool pull_and_push(struct control_link *link)
{
	link->held = true;
	if (!pull(link))
		return false;
	if (link->held)
		control_link_push(link);
	return true;
}

static void link_ready(struct loop_source *source, uint32_t events)
{
	struct control_link *link = (struct control_link *)source;

	/* Read first: the kernel reports an error once, and this read handles it. */
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !pull_and_push(link))
		return;
	if (events & EPOLLOUT)
		control_link_push(link);
}
