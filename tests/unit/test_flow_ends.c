/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A receiver whose connection ends before its time: whether that was the plan, only the sender's word can say. Over
 * loopback, by both roles (a client's download, a server's upload), each end in milliseconds.
 */
#include "cm.h"
#include "flow_set.h"
#include "flow_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SENT = 1000, FOR_S = 10 };
#define MS (uint64_t)KTRXER_NS_PER_MS

/* Events of the connection and of the control connection, in this order, a few milliseconds apart. */
enum step { NOTHING = 0, RESET, CLOSE, REPORTS_PLANNED, REPORTS_BROKEN, LINK_DIES, PATIENCE_ENDS };

struct play {
	enum step steps[3];
	bool server;
	enum flow_reason reason;
	enum flow_error error;
};

struct stage {
	struct loop *loop;
	struct flow_set *set;
	struct loop_timer timer;
	const struct play *play;
	unsigned int step;
	int peer;
	uint64_t cut_ns;
	struct flow_end end;
	unsigned int ends;
};

static void on_sample(void *context, uint32_t flow, const struct flow_sample *sample)
{
	(void)context, (void)flow, (void)sample;
}

static void on_ended(void *context, uint32_t flow, const struct flow_end *end)
{
	struct stage *s = context;

	assert_int_equal(flow, 0);
	s->end = *end;
	s->ends++;
	loop_stop(s->loop);
}

static void cut(struct stage *s, bool hard)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (hard)
		assert_int_equal(setsockopt(s->peer, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
	close(s->peer);
	s->peer = -1;
	s->cut_ns = ktrxer_now_ns();
}

static void step_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct stage *s = (struct stage *)((char *)timer - offsetof(struct stage, timer));
	const struct flow *flow = flow_set_at(s->set, 0);
	struct flow_end word = { .time_ns = now_ns, .bytes = SENT };

	switch (s->play->steps[s->step]) {
	case RESET:
	case CLOSE:
		cut(s, s->play->steps[s->step] == RESET);
		break;
	case REPORTS_PLANNED:
	case REPORTS_BROKEN:
		word.reason = s->play->steps[s->step] == REPORTS_PLANNED ? FLOW_PLANNED : FLOW_BROKEN;
		flow_set_reported(s->set, 0, &word);
		break;
	case LINK_DIES: /* as flow_client.c does it then */
		flow_set_stop(s->set);
		break;
	case PATIENCE_ENDS:
		assert_int_equal(flow->state, FLOW_CUT);
		assert_int_equal(s->ends, 0); /* nothing is said yet */
		assert_true(flow->settle_ns > now_ns + (KTRXER_FLOW_WORD_S - 1) * (uint64_t)KTRXER_NS_PER_S);
		flow_set_flow(s->set, 0)->settle_ns = now_ns;
		break;
	default:
		fail_msg("the flow did not end");
	}
	if (++s->step < sizeof s->play->steps / sizeof s->play->steps[0] && s->play->steps[s->step])
		timer->at_ns = now_ns + 5 * MS;
	else
		timer->at_ns = now_ns + 2000 * MS; /* nothing more is coming: then it hangs */
}

static int connected(int *peer)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof here;
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	int fd;

	assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof here), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &length), 0);
	*peer = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(*peer, (struct sockaddr *)&here, sizeof here), 0);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	close(listener);
	return fd;
}

static void act(const struct play *play)
{
	static const uint8_t some[SENT];
	struct stage s = { .play = play };
	struct flow_set_options o = { .flows = 1,
				      .server = play->server,
				      .for_ns = FOR_S * (uint64_t)KTRXER_NS_PER_S,
				      .sample_ns = 3 * MS,
				      .sample = on_sample,
				      .ended = on_ended,
				      .context = &s };
	const struct flow_spec spec = { .down = !play->server };
	const int fd = connected(&s.peer);
	const uint64_t start_ns = ktrxer_now_ns();

	assert_int_equal(loop_new(&s.loop), 0);
	o.loop = s.loop;
	assert_int_equal(flow_set_new(&s.set, &o), 0);
	assert_int_equal(flow_set_add(s.set, &flow_tcp_ops, &spec), 0);
	assert_int_equal(flow_set_attach(s.set, 0, fd, 0), 0);
	s.timer = (struct loop_timer){ .at_ns = start_ns + 10 * MS, .due = step_due };
	loop_timer_add(s.loop, &s.timer);
	flow_set_start(s.set, start_ns);
	assert_int_equal(send(s.peer, some, sizeof some, 0), sizeof some);
	assert_int_equal(loop_run(s.loop, -1), 0);

	assert_int_equal(s.ends, 1);
	assert_int_equal(s.end.reason, play->reason);
	assert_int_equal(s.end.error, play->error);
	assert_int_equal(s.end.bytes, SENT);
	/* It ended when it was cut, not when that was understood. */
	assert_true(s.end.time_ns >= s.cut_ns);
	assert_true(s.end.time_ns - start_ns < FOR_S * (uint64_t)KTRXER_NS_PER_S / 2);
	assert_true(flow_set_over(s.set));
	assert_int_equal(flow_set_at(s.set, 0)->state, FLOW_OVER);
	loop_timer_remove(s.loop, &s.timer);
	flow_set_free(s.set);
	loop_free(s.loop);
	if (s.peer >= 0)
		close(s.peer);
}

/*
 * A flow of a byte each nanosecond, sampled by a thread that loses its processor between the time and the count. The
 * test ends after a number of calls and not after a time, because a busy machine has time for few samples.
 */
enum { CALLS = 60 };
struct clockwork {
	struct loop *loop;
	uint64_t start_ns;
	unsigned int calls, samples, wrong;
};
static struct clockwork clockwork;

static void clock_begin(struct flow *flow)
{
	(void)flow;
}

static void clock_close(struct flow *flow, bool gently)
{
	(void)flow, (void)gently;
}

static void clock_sample(struct flow *flow, struct flow_sample *sample)
{
	const unsigned int call = clockwork.calls++;

	(void)flow;
	if (call % 3 == 1 || (call >= 20 && call < 40))
		for (const uint64_t until_ns = ktrxer_now_ns() + 2 * MS; ktrxer_now_ns() < until_ns;)
			;
	sample->bytes = ktrxer_now_ns() - clockwork.start_ns;
}

static void clock_on_sample(void *context, uint32_t flow, const struct flow_sample *sample)
{
	const int64_t apart = (int64_t)(sample->time_ns - clockwork.start_ns - sample->bytes);

	(void)context, (void)flow;
	clockwork.samples++;
	clockwork.wrong += clockwork.samples > 1 && (apart < -(int64_t)MS / 2 || apart > (int64_t)MS / 2);
	if (clockwork.calls >= CALLS)
		loop_stop(clockwork.loop);
}

static void clock_ended(void *context, uint32_t flow, const struct flow_end *end)
{
	(void)context, (void)flow, (void)end;
	loop_stop(clockwork.loop);
}

TEST(a_sample_is_of_its_time_or_missing)
{
	static const struct flow_ops ops = { .begin = clock_begin, .sample = clock_sample, .close = clock_close };
	struct flow_set_options o = {
		.flows = 1, .for_ns = 30000 * MS, .sample_ns = 3 * MS, .sample = clock_on_sample, .ended = clock_ended
	};
	const struct flow_spec spec = { .down = true };
	struct flow_set *set;

	assert_int_equal(loop_new(&clockwork.loop), 0);
	o.loop = clockwork.loop;
	assert_int_equal(flow_set_new(&set, &o), 0);
	assert_int_equal(flow_set_add(set, &ops, &spec), 0);
	flow_set_attach_udp(set, 0);
	clockwork.start_ns = ktrxer_now_ns();
	flow_set_start(set, clockwork.start_ns);
	assert_int_equal(loop_run(clockwork.loop, -1), 0);
	assert_true(clockwork.samples > 3);
	assert_true(clockwork.calls >= CALLS);
	assert_int_equal(clockwork.wrong, 0);
	assert_true(flow_set_at(set, 0)->missed >= 4); /* 20 calls in a row, four tries for each sample */
	flow_set_free(set);
	loop_free(clockwork.loop);
}

/* The first sample of a receiver comes after the end of the flow, because its thread had no processor. */
enum { LATE_FOR_MS = 5, LATE_STALL_MS = 40 };
static struct {
	struct loop *loop;
	unsigned int samples;
	uint64_t last_ns, ended_ns;
} late;

static void late_sample(struct flow *flow, struct flow_sample *sample)
{
	(void)sample;
	while (!late.samples && ktrxer_now_ns() < flow->start_ns + LATE_STALL_MS * MS)
		;
}

static uint64_t late_last_ns(const struct flow *flow)
{
	return flow->end_ns;
}

static void late_on_sample(void *context, uint32_t flow, const struct flow_sample *sample)
{
	(void)context, (void)flow;
	assert_true(sample->time_ns >= late.last_ns);
	late.last_ns = sample->time_ns;
	late.samples++;
}

static void late_ended(void *context, uint32_t flow, const struct flow_end *end)
{
	(void)context, (void)flow;
	late.ended_ns = end->time_ns;
	loop_stop(late.loop);
}

TEST(times_of_samples_never_decrease)
{
	static const struct flow_ops ops = {
		.begin = clock_begin, .sample = late_sample, .last_ns = late_last_ns, .close = clock_close
	};
	struct flow_set_options o = { .flows = 1,
				      .for_ns = LATE_FOR_MS * MS,
				      .sample_ns = 3 * MS,
				      .sample = late_on_sample,
				      .ended = late_ended };
	const struct flow_spec spec = { .down = true };
	struct flow_set *set;
	uint64_t start_ns;

	assert_int_equal(loop_new(&late.loop), 0);
	o.loop = late.loop;
	assert_int_equal(flow_set_new(&set, &o), 0);
	assert_int_equal(flow_set_add(set, &ops, &spec), 0);
	flow_set_attach_udp(set, 0);
	start_ns = ktrxer_now_ns();
	flow_set_start(set, start_ns);
	assert_int_equal(loop_run(late.loop, -1), 0);
	assert_true(late.samples >= 2);
	assert_true(late.last_ns > start_ns + LATE_FOR_MS * MS);
	assert_int_equal(late.ended_ns, start_ns + LATE_FOR_MS * MS); /* which the rate is by */
	flow_set_free(set);
	loop_free(late.loop);
}

TEST(an_end_by_plan_is_reported)
{
	for (int server = 0; server < 2; server++) {
		act(&(struct play){ { RESET, REPORTS_PLANNED }, server, FLOW_PLANNED, FLOW_NO_ERROR });
		act(&(struct play){ { REPORTS_PLANNED, RESET }, server, FLOW_PLANNED, FLOW_NO_ERROR });
		act(&(struct play){ { CLOSE, REPORTS_PLANNED }, server, FLOW_PLANNED, FLOW_NO_ERROR });
	}
}

TEST(an_end_without_the_word_is_a_fault)
{
	for (int server = 0; server < 2; server++) {
		act(&(struct play){ { RESET, REPORTS_BROKEN }, server, FLOW_BROKEN, FLOW_RESET });
		act(&(struct play){ { REPORTS_BROKEN, RESET }, server, FLOW_BROKEN, FLOW_RESET });
		act(&(struct play){ { RESET, LINK_DIES }, server, FLOW_BROKEN, FLOW_RESET });
		act(&(struct play){ { CLOSE, LINK_DIES }, server, FLOW_CLOSED, FLOW_NO_ERROR });
		act(&(struct play){ { RESET, PATIENCE_ENDS }, server, FLOW_BROKEN, FLOW_RESET });
		act(&(struct play){ { CLOSE, PATIENCE_ENDS }, server, FLOW_CLOSED, FLOW_NO_ERROR });
	}
}

/*
 * A sender's thread that has no processor from before the end of the flow until after the receiver has closed: the
 * flow lasted as planned. A receiver that closes before that end breaks it.
 */
enum { BUSY_FOR_MS = 30 };
struct busy {
	struct stage stage; /* first: of on_ended() */
	struct loop_timer timer;
	uint64_t until_ns;
};

static void busy_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct busy *b = (struct busy *)((char *)timer - offsetof(struct busy, timer));
	struct flow *flow = flow_set_flow(b->stage.set, 0);

	(void)now_ns;
	while (ktrxer_now_ns() < b->until_ns)
		;
	assert_int_equal(flow->state, FLOW_GOING);
	cut(&b->stage, true);
	flow->source.ready(&flow->source, EPOLLERR | EPOLLHUP);
}

static void sender_cut(int busy_ms, enum flow_reason reason)
{
	struct busy b = { .timer = { .due = busy_due } };
	struct flow_set_options o = { .flows = 1,
				      .server = true,
				      .for_ns = BUSY_FOR_MS * MS,
				      .sample_ns = 1000 * MS,
				      .sample = on_sample,
				      .ended = on_ended,
				      .context = &b.stage };
	const struct flow_spec spec = { .down = true };
	const int fd = connected(&b.stage.peer);

	assert_int_equal(loop_new(&b.stage.loop), 0);
	o.loop = b.stage.loop;
	assert_int_equal(flow_set_new(&b.stage.set, &o), 0);
	assert_int_equal(flow_set_add(b.stage.set, &flow_tcp_ops, &spec), 0);
	assert_int_equal(flow_set_attach(b.stage.set, 0, fd, 0), 0);
	loop_timer_add(b.stage.loop, &b.timer);
	b.timer.at_ns = ktrxer_now_ns();
	b.until_ns = b.timer.at_ns + (uint64_t)busy_ms * MS;
	flow_set_start(b.stage.set, b.timer.at_ns);
	flow_set_flow(b.stage.set, 0)->state = FLOW_GOING;
	assert_int_equal(loop_run(b.stage.loop, -1), 0);
	assert_int_equal(b.stage.ends, 1);
	assert_int_equal(b.stage.end.reason, reason);
	/* The user mode of qemu does not translate the number of SO_ERROR, and MIPS has other numbers. */
	assert_int_equal(b.stage.end.error != FLOW_NO_ERROR, reason == FLOW_BROKEN);
	loop_timer_remove(b.stage.loop, &b.timer);
	flow_set_free(b.stage.set);
	loop_free(b.stage.loop);
}

TEST(a_receiver_that_does_not_wait_for_a_busy_sender)
{
	sender_cut(BUSY_FOR_MS, FLOW_PLANNED);
	sender_cut(0, FLOW_BROKEN);
}
