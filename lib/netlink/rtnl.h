/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A small rtnetlink client: one request at a time, its answer in any number of parts, and the kernel's own words where
 * it says no. Everything is about the network namespace in which the socket was opened.
 */
#ifndef KTRXER_LIB_RTNL_H
#define KTRXER_LIB_RTNL_H

#include "bytes.h"

#include <linux/netlink.h>

struct rtnl;

/* 0, or a negative errno (-EPROTONOSUPPORT: a kernel without netlink). */
int ktrxer_rtnl_open(struct rtnl **rtnl);
/* The same for another of netlink's families (NETLINK_GENERIC). */
int ktrxer_rtnl_open_family(struct rtnl **rtnl, int family);
void ktrxer_rtnl_close(struct rtnl *rtnl);

/*
 * Messages to the kernel, each a header, a fixed body and attributes. A request is one message, and fits in `own`. A
 * batch is several, and grows. A message that finds no room marks all of it as failed, and nothing is sent: -EMSGSIZE
 * (request), -ENOMEM (batch).
 */
struct rtnl_request {
	uint8_t *data; /* `own`, or memory of the heap: do not copy the structure */
	size_t length, room;
	size_t message; /* where the message that was begun last starts */
	bool grows, failed;
	uint8_t own[512];
};

/* Begins a request with its one message. It needs no ktrxer_rtnl_request_free(). */
void ktrxer_rtnl_request_begin(struct rtnl_request *request, uint16_t type, uint16_t flags, const void *body,
			       size_t length);
/* Begins a batch without a message. */
void ktrxer_rtnl_batch_begin(struct rtnl_request *batch);
void ktrxer_rtnl_request_free(struct rtnl_request *request);

/* Later additions belong to the message that was begun last, whose length is always right. */
void ktrxer_rtnl_message_begin(struct rtnl_request *request, uint16_t type, uint16_t flags, const void *body,
			       size_t length);
void ktrxer_rtnl_request_put(struct rtnl_request *request, uint16_t type, const void *value, size_t length);
void ktrxer_rtnl_request_put_u32(struct rtnl_request *request, uint16_t type, uint32_t value);
void ktrxer_rtnl_request_put_be32(struct rtnl_request *request, uint16_t type, uint32_t value);
void ktrxer_rtnl_request_put_string(struct rtnl_request *request, uint16_t type, const char *text);
/* An attribute that holds those that follow, up to ktrxer_rtnl_request_nest_end() with the value that was returned. */
size_t ktrxer_rtnl_request_nest(struct rtnl_request *request, uint16_t type);
void ktrxer_rtnl_request_nest_end(struct rtnl_request *request, size_t nest);
/* Asks for the acknowledgement of the message that was begun last. */
void ktrxer_rtnl_request_acknowledge(struct rtnl_request *request);

/* One part of an answer: `body` is what follows the netlink header. A negative errno ends the reading. */
typedef int rtnl_take(void *context, uint16_t type, struct bytes body);

#define RTNL_TEXT 128

/*
 * Sends it, and reads to the end of the answer. A negative errno is the kernel's own (then `text`, unless NULL, has its
 * words or ""), or -EINTR: the table changed under a dump, ask again; -EBADMSG: an answer that lies about its
 * lengths; -ETIMEDOUT.
 */
int ktrxer_rtnl_talk(struct rtnl *rtnl, struct rtnl_request *request, rtnl_take *take, void *context,
		     char text[RTNL_TEXT]);

/*
 * A dump, read again from its beginning when the table changed under it: `restart` (may be NULL) clears what `take` has
 * gathered. -EINTR: it changed each time, and what was gathered last is what there is.
 */
int ktrxer_rtnl_dump(struct rtnl *rtnl, struct rtnl_request *request, void (*restart)(void *context), rtnl_take *take,
		     void *context);

/* Room for a batch (one datagram, however long), and time for its commit. */
void ktrxer_rtnl_batch_allow(struct rtnl *rtnl);
/*
 * Sends a batch of messages, of which the last but one (before the end of the batch) asks for an acknowledgement, and
 * waits for that. The kernel's error, and the number of the message that it is about.
 */
int ktrxer_rtnl_batch(struct rtnl *rtnl, struct rtnl_request *batch, uint32_t *message);

/* The state of reading one answer. */
struct rtnl_answer {
	uint32_t sequence, port; /* parts for others are passed over */
	/* of a batch: the message whose acknowledgement ends the answer. Its numbers go up from `sequence` */
	uint32_t last;
	uint32_t message; /* of a batch: the message that the error is about */
	bool complete;
	bool interrupted;
	char text[RTNL_TEXT];
};

/* Reads one datagram of the kernel. 0, the error that the kernel reports, -EBADMSG, or what `take` returned. */
int ktrxer_rtnl_read(struct rtnl_answer *answer, struct bytes datagram, rtnl_take *take, void *context);

/* Steps through attributes; false at the end, and where lengths lie: then attributes->ok is false too. */
bool ktrxer_rtnl_next(struct bytes *attributes, uint16_t *type, struct bytes *value);
/* A number in the machine's own order; 0 where the attribute is of another size. */
uint32_t ktrxer_rtnl_u32(struct bytes value);
/* A string, cut to `size`; "" when it has no end. Control characters stay: ktrxer_fail() takes them out. */
void ktrxer_rtnl_string(struct bytes value, char *text, size_t size);

#endif
