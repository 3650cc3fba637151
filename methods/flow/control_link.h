/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A control connection over the loop of loop.h: bytes become frames, frames become bytes that wait until the socket
 * takes them. Either side's. Nothing blocks, and what waits has a limit.
 */
#ifndef KTRXER_METHODS_CONTROL_LINK_H
#define KTRXER_METHODS_CONTROL_LINK_H

#include "control.h"
#include "loop.h"

struct control_link {
	struct loop_source source; /* first */
	struct loop *loop;
	struct control_keys keys;
	bool keyed;
	uint32_t most;      /* the longest body that is taken now */
	uint32_t out_limit; /* bytes that may wait */
	uint8_t *in, *out;
	uint32_t in_used, in_size, out_at, out_used, out_size;
	uint64_t heard_ns; /* when something last came */
	uint64_t frames;   /* that came */
	int error;         /* of the socket, met by a write */
	bool held;         /* frames wait for control_link_push(): many frames, one write */
	/*
	 * Each returns false when the link (and its owner) is gone: it is not touched any more. `preface`: before there
	 * are keys, each CONTROL_PREFACE bytes. `closed`: 0 the other end has ended it; -EBADMSG a wrong HMAC;
	 * -EMSGSIZE, another errno. Nothing comes after it.
	 */
	bool (*preface)(struct control_link *link, const uint8_t bytes[CONTROL_PREFACE]);
	bool (*frame)(struct control_link *link, const struct control_frame *frame);
	void (*closed)(struct control_link *link, int error);
};

/* `fd` is connected, or on its way; from now on it is the link's. The callbacks are set by the owner before. */
int control_link_open(struct control_link *link, struct loop *loop, int fd);
void control_link_close(struct control_link *link);
/* Bytes that are no frame. 0 or -ENOBUFS. */
int control_link_bytes(struct control_link *link, const uint8_t *data, uint32_t length);
/*
 * A frame: where to write its body (at most `most` bytes; NULL: no room), then its length. It leaves as soon as the
 * socket takes it; `closed` reports an error of the socket, later.
 */
uint8_t *control_link_begin(struct control_link *link, uint32_t most);
void control_link_send(struct control_link *link, uint8_t type, uint32_t length);
/* Sends a HMAC of zeros, to a peer that has not proven the token. */
void control_link_send_unsealed(struct control_link *link, uint8_t type, uint32_t length);
void control_link_push(struct control_link *link);
uint32_t control_link_waiting(const struct control_link *link); /* bytes that the socket has not taken */
/* Sends a frame without a body. */
void control_link_say(struct control_link *link, uint8_t type);
/* Passes bytes to the link as if they came from the socket: for tests. False: the link is gone. */
bool control_link_feed(struct control_link *link, const uint8_t *data, uint32_t length);

#endif
