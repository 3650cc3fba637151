/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "phc_sampler.h"

#include "helper_thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#define SAMPLER_STACK (64 * 1024)

static void line_publish(struct phc_sampler *sampler)
{
	const uint32_t version = atomic_load_explicit(&sampler->version, memory_order_relaxed);
	uint32_t words[PHC_LINE_WORDS];
	struct phc_line line;

	if (!ktrxer_phc_map_line(&sampler->phc.map, &line))
		return;
	memcpy(words, &line, sizeof words);
	atomic_store_explicit(&sampler->version, version + 1, memory_order_relaxed);
	for (int i = 0; i < PHC_LINE_WORDS; i++)
		atomic_store_explicit(&sampler->words[i], words[i], memory_order_release);
	atomic_store_explicit(&sampler->version, version + 2, memory_order_release);
}

void ktrxer_phc_sampler_line(const struct phc_sampler *sampler, struct phc_line *line, uint32_t *version)
{
	const uint32_t begin = atomic_load_explicit(&sampler->version, memory_order_acquire);
	uint32_t words[PHC_LINE_WORDS];

	if (begin == *version || begin & 1)
		return;
	for (int i = 0; i < PHC_LINE_WORDS; i++)
		words[i] = atomic_load_explicit(&sampler->words[i], memory_order_acquire);
	if (atomic_load_explicit(&sampler->version, memory_order_relaxed) != begin)
		return;
	memcpy(line, words, sizeof words);
	*version = begin;
}

static void *sampler_main(void *context)
{
	struct phc_sampler *sampler = context;

	prctl(PR_SET_NAME, "ktx-nic-clock", 0, 0, 0);
	pthread_mutex_lock(&sampler->lock);
	while (!sampler->quit) {
		const uint64_t at_ns = sampler->phc.sampled_ns + PHC_SAMPLE_NS;
		const struct timespec at = {
			.tv_sec = (time_t)(at_ns / KTRXER_NS_PER_S),
			.tv_nsec = (long)(at_ns % KTRXER_NS_PER_S),
		};

		if (pthread_cond_timedwait(&sampler->wake, &sampler->lock, &at) == 0)
			continue;
		pthread_mutex_unlock(&sampler->lock);
		ktrxer_phc_refresh(&sampler->phc, &sampler->real, ktrxer_now_ns());
		line_publish(sampler);
		pthread_mutex_lock(&sampler->lock);
	}
	pthread_mutex_unlock(&sampler->lock);
	return NULL;
}

/* Not with the priority of the calling thread, which may be real-time: samples are not urgent. */
static int thread_make(struct phc_sampler *sampler)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SAMPLER_STACK);
	helper_thread_policy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&sampler->thread, &attr, sampler_main, sampler);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

void ktrxer_phc_sampler_init(struct phc_sampler *sampler)
{
	*sampler = (struct phc_sampler){ .phc = { .fd = -1, .setting.place = -1 } };
}

int ktrxer_phc_sampler_start(struct phc_sampler *sampler)
{
	pthread_condattr_t attr;
	int rc;

	ktrxer_clock_map_init(&sampler->real);
	ktrxer_phc_refresh(&sampler->phc, &sampler->real, ktrxer_now_ns());
	if (!sampler->phc.map.count)
		return -EIO;
	line_publish(sampler);
	pthread_mutex_init(&sampler->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sampler->wake, &attr);
	pthread_condattr_destroy(&attr);
	rc = thread_make(sampler);
	sampler->has_thread = rc == 0;
	if (rc == 0)
		return 0;
	pthread_cond_destroy(&sampler->wake);
	pthread_mutex_destroy(&sampler->lock);
	return rc;
}

int ktrxer_phc_sampler_open(struct phc_sampler *sampler, const char *device, uint32_t index)
{
	int rc = ktrxer_phc_open(&sampler->phc, device, index, PHC_SENT);

	if (rc < 0)
		return rc;
	rc = ktrxer_phc_sampler_start(sampler);
	if (rc < 0)
		ktrxer_phc_close(&sampler->phc);
	return rc;
}

void ktrxer_phc_sampler_close(struct phc_sampler *sampler)
{
	if (sampler->has_thread) {
		pthread_mutex_lock(&sampler->lock);
		sampler->quit = true;
		pthread_cond_signal(&sampler->wake);
		pthread_mutex_unlock(&sampler->lock);
		pthread_join(sampler->thread, NULL);
		pthread_cond_destroy(&sampler->wake);
		pthread_mutex_destroy(&sampler->lock);
		sampler->has_thread = false;
	}
	ktrxer_phc_close(&sampler->phc);
}
