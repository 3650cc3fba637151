/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_connect.h"

#include "flow_tcp.h"
#include "flow_witness.h"
#include "name.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* The window is well below the server's backlog, and its places for pending connections. */
enum { WINDOW = 64 };

struct attempt {
	struct loop_source source; /* first; fd -1: free */
	struct flow_connect *connect;
	uint32_t flow;
};

struct flow_connect {
	struct flow_connect_options options;
	uint32_t next;
	bool failed;
	struct loop_timer timer; /* begins in the loop, not in the caller's frame */
	struct attempt attempts[WINDOW];
};

int flow_connect_socket(const struct ktrxer_addr *to, const struct ktrxer_addr *from, uint16_t port,
			const struct flow_spec *spec, int *error)
{
	int fd = socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;
	union ktrxer_name name;
	socklen_t length;

	if (fd < 0) {
		*error = -errno;
		return -1;
	}
	/* Set options before it connects, so that the first packet is marked as well. */
	if (spec)
		rc = flow_tcp_prepare(fd, spec, !spec->down, 0);
	if (rc == 0 && from->family) {
		length = ktrxer_name_make(&name, from, 0);
		rc = bind(fd, &name.sa, length) != 0 ? -errno : 0;
	}
	length = ktrxer_name_make(&name, to, port);
	if (rc == 0 && connect(fd, &name.sa, length) != 0 && errno != EINPROGRESS)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	*error = rc;
	return -1;
}

bool flow_connect_established(int fd)
{
	union ktrxer_name peer;
	socklen_t length = sizeof peer;

	return fd >= 0 && getpeername(fd, &peer.sa, &length) == 0;
}

static void attempt_end(struct attempt *a)
{
	loop_unwatch(a->connect->options.loop, &a->source);
	a->source.fd = -1;
}

static void connect_fail(struct flow_connect *c, uint32_t flow, int error)
{
	c->failed = true;
	c->options.failed(c->options.context, flow, error);
}

static void attempts_fill(struct flow_connect *c);

/* Connected: it shows its cookie, and is a flow from then on. */
static int introduce(struct flow_connect *c, uint32_t flow, int fd)
{
	struct flow *own = flow_set_flow(c->options.flows, flow);
	const uint64_t acked = flow_tcp_acked(fd);
	struct control_preface preface = {
		.kind = CONTROL_DATA, .version = CONTROL_VERSION, .session = c->options.session, .flow = flow
	};
	uint8_t bytes[CONTROL_PREFACE];
	ssize_t sent;

	control_cookie(c->options.keys, preface.session, flow, preface.cookie);
	control_preface_write(bytes, &preface);
	/* Nothing was written before: there is room for it. */
	flow_witness_begin(own, fd);
	sent = send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent != sizeof bytes)
		return errno ? -errno : -EIO;
	flow_witness_end(own, fd);
	return flow_set_attach(c->options.flows, flow, fd, acked == UINT64_MAX ? acked : acked + sizeof bytes);
}

static void attempt_ready(struct loop_source *source, uint32_t events)
{
	struct attempt *a = (struct attempt *)source;
	struct flow_connect *c = a->connect;
	const int fd = source->fd;
	int error = 0;
	socklen_t length = sizeof error;

	(void)events;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		error = errno;
	attempt_end(a);
	error = error ? -error : introduce(c, a->flow, fd);
	if (error < 0) {
		close(fd);
		connect_fail(c, a->flow, error);
		return;
	}
	c->options.connected(c->options.context, a->flow, fd);
	attempts_fill(c);
}

static void attempts_fill(struct flow_connect *c)
{
	const struct flow_connect_options *o = &c->options;

	for (int i = 0; i < WINDOW && !c->failed; i++) {
		struct attempt *a = &c->attempts[i];
		int error = 0;

		while (c->next < flow_set_count(o->flows) && flow_set_at(o->flows, c->next)->spec.udp)
			c->next++;
		if (c->next == flow_set_count(o->flows))
			return;
		if (a->source.fd >= 0)
			continue;
		a->flow = c->next++;
		a->source.ready = attempt_ready;
		a->source.fd =
			flow_connect_socket(&o->to, &o->from, o->port, &flow_set_at(o->flows, a->flow)->spec, &error);
		if (a->source.fd < 0 || (error = loop_watch(o->loop, &a->source, EPOLLOUT)) < 0)
			connect_fail(c, a->flow, error);
	}
}

static void connect_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	attempts_fill((struct flow_connect *)((char *)timer - offsetof(struct flow_connect, timer)));
}

int flow_connect_new(struct flow_connect **out, const struct flow_connect_options *options)
{
	struct flow_connect *c = calloc(1, sizeof *c);

	*out = c;
	if (!c)
		return -ENOMEM;
	c->options = *options;
	c->timer = (struct loop_timer){ .at_ns = 0, .due = connect_due };
	loop_timer_add(options->loop, &c->timer);
	for (int i = 0; i < WINDOW; i++) {
		c->attempts[i].connect = c;
		c->attempts[i].source.fd = -1;
	}
	return 0;
}

void flow_connect_free(struct flow_connect *c)
{
	if (!c)
		return;
	loop_timer_remove(c->options.loop, &c->timer);
	for (int i = 0; i < WINDOW; i++)
		if (c->attempts[i].source.fd >= 0) {
			const int fd = c->attempts[i].source.fd;

			attempt_end(&c->attempts[i]);
			close(fd);
		}
	free(c);
}
