/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The event loop: timers in time, sources when they are ready, and each way to stop. */
#include "cm.h"

#include "loop.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MS 1000000ULL

struct scene {
	struct loop *loop;
	struct loop_source source, other;
	struct loop_timer timer;
	uint64_t due_at_ns[3], was_due_ns[3];
	int due, ready, blind_rounds;
};

static struct loop_source event_source(void (*ready)(struct loop_source *, uint32_t))
{
	struct loop_source source = { .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = ready };

	assert_true(source.fd >= 0);
	return source;
}

static void signal_source(const struct loop_source *source)
{
	const uint64_t one = 1;

	assert_int_equal(write(source->fd, &one, sizeof one), sizeof one);
}

static void scene_begin(struct scene *s)
{
	*s = (struct scene){ .timer = { .at_ns = KTRXER_NEVER } };
	assert_int_equal(loop_new(&s->loop), 0);
	loop_timer_add(s->loop, &s->timer);
}

static void scene_end(struct scene *s)
{
	loop_timer_remove(s->loop, &s->timer);
	loop_free(s->loop);
	if (s->source.ready)
		close(s->source.fd);
	if (s->other.ready)
		close(s->other.fd);
}

static struct scene *of_timer(struct loop_timer *timer)
{
	return (struct scene *)((char *)timer - offsetof(struct scene, timer));
}

static void three_times(struct loop_timer *timer, uint64_t now_ns)
{
	struct scene *s = of_timer(timer);

	s->was_due_ns[s->due++] = now_ns;
	if (s->due == 3)
		loop_stop(s->loop);
	else
		timer->at_ns = s->due_at_ns[s->due];
}

TEST(timers_are_never_early)
{
	struct scene s;
	const uint64_t start = ktrxer_now_ns();

	scene_begin(&s);
	s.timer.due = three_times;
	for (int i = 0; i < 3; i++)
		s.due_at_ns[i] = start + (uint64_t)i * 3 * MS;
	s.timer.at_ns = s.due_at_ns[0];
	assert_int_equal(loop_run(s.loop, -1), 0);
	for (int i = 0; i < 3; i++)
		assert_true(s.was_due_ns[i] >= s.due_at_ns[i]);
	scene_end(&s);
}

static void take_and_stop(struct loop_source *source, uint32_t events)
{
	struct scene *s = (struct scene *)((char *)source - offsetof(struct scene, source));

	assert_true(events & EPOLLIN);
	s->ready++;
	loop_stop(s->loop);
}

TEST(a_ready_source_is_called)
{
	struct scene s;

	scene_begin(&s);
	s.source = event_source(take_and_stop);
	assert_int_equal(loop_watch(s.loop, &s.source, EPOLLIN), 0);
	signal_source(&s.source);
	assert_int_equal(loop_run(s.loop, -1), 0);
	assert_int_equal(s.ready, 1);
	scene_end(&s);
}

/* Two rounds without a look at the sources, then one with. */
static void blind_twice(struct loop_timer *timer, uint64_t now_ns)
{
	struct scene *s = of_timer(timer);

	assert_int_equal(s->ready, 0);
	if (++s->blind_rounds > 2)
		return;
	loop_wait_blind(s->loop);
	timer->at_ns = now_ns + MS;
}

TEST(a_blind_wait_leaves_sources_alone)
{
	struct scene s;

	scene_begin(&s);
	s.source = event_source(take_and_stop);
	s.timer.due = blind_twice;
	s.timer.at_ns = 0;
	assert_int_equal(loop_watch(s.loop, &s.source, EPOLLIN), 0);
	signal_source(&s.source);
	assert_int_equal(loop_run(s.loop, -1), 0);
	assert_true(s.ready == 1 && s.blind_rounds == 3);
	scene_end(&s);
}

static struct scene *pair;

/* Whichever of two ready sources comes first ends the other one. */
static void end_both(struct loop_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	pair->ready++;
	loop_unwatch(pair->loop, &pair->source);
	loop_unwatch(pair->loop, &pair->other);
	pair->timer.at_ns = 0;
}

static void stop_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	loop_stop(of_timer(timer)->loop);
}

TEST(no_call_after_unwatch)
{
	struct scene s;

	scene_begin(&s);
	pair = &s;
	s.source = event_source(end_both);
	s.other = event_source(end_both);
	s.timer.due = stop_due;
	assert_int_equal(loop_watch(s.loop, &s.source, EPOLLIN), 0);
	assert_int_equal(loop_watch(s.loop, &s.other, EPOLLIN), 0);
	signal_source(&s.source);
	signal_source(&s.other);
	assert_int_equal(loop_run(s.loop, -1), 0);
	assert_int_equal(s.ready, 1);
	scene_end(&s);
}

TEST(the_stop_descriptor_stops_and_is_not_read)
{
	struct scene s;
	uint64_t value = 0;

	scene_begin(&s);
	s.source = event_source(take_and_stop);
	signal_source(&s.source);
	assert_int_equal(loop_run(s.loop, s.source.fd), 0);
	loop_wait_blind(s.loop);
	assert_int_equal(loop_run(s.loop, s.source.fd), 0);
	assert_int_equal(s.ready, 0);
	assert_true(read(s.source.fd, &value, sizeof value) == sizeof value && value == 1);
	scene_end(&s);
}
