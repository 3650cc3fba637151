/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "schedule_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void parses(const char *text, size_t length, const uint64_t *want, uint64_t count)
{
	struct schedule_list list;
	struct ktrxer_error err = { 0 };
	int ret = schedule_list_parse(&list, (const uint8_t *)text, length, "list", &err);

	if (ret)
		fail_msg("%s", err.text);
	assert_int_equal(list.count, count);
	for (uint64_t i = 0; i < count; i++)
		assert_true(list.offsets_ns[i] == want[i]);
	schedule_list_free(&list);
	assert_null(list.offsets_ns);
}

static void refuses(const char *text, size_t length, const char *word)
{
	struct schedule_list list;
	struct ktrxer_error err = { 0 };

	assert_int_equal(schedule_list_parse(&list, (const uint8_t *)text, length, "list", &err), -EINVAL);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
	assert_null(list.offsets_ns);
	assert_int_equal(list.count, 0);
}

#define PARSES(text, ...)                                                                             \
	parses(text, sizeof(text) - 1, (const uint64_t[]){ __VA_ARGS__ },                             \
	       sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
#define REFUSES(text, word) refuses(text, sizeof(text) - 1, word)

TEST(what_is_a_list)
{
	PARSES("1\n2\n3\n", 1, 2, 3);
	PARSES("1\n2\n3", 1, 2, 3);
	PARSES("# offsets\r\n\r\n  7\t# the first\r\n#8\n\t7\r\n 0009", 7, 7, 9);
	PARSES("18446744073709551615", UINT64_MAX);
	PARSES("7\n250us\n1ms # and so on\n1.5s\n2 s\n1m", 7, 250000, 1000000, 1500000000, 2000000000, 60000000000);
}

TEST(what_is_not)
{
	static char line[KTRXER_LIST_LINE_MAX + 2];

	REFUSES("", "list: no offsets");
	REFUSES("# nothing\n\n", "list: no offsets");
	REFUSES("1\n\n18446744073709551616\n", "list:3: ");
	REFUSES("-1\n", "list:1: ");
	REFUSES("1 2\n", "list:1: ");
	REFUSES("1,2\n", "list:1: ");
	REFUSES("1e3\n", "list:1: ");
	REFUSES("1.5\n", "a unit");
	REFUSES("1.\n", "a unit");
	REFUSES("5\n1us\n1.5ns\n", "list:3: ");
	REFUSES("5\n5 parsecs\n", "list:2: ");
	REFUSES("1s\n999ms\n", "list:2: offset 999000000 ns comes before");
	REFUSES("-1s\n", "list:1: ");
	REFUSES("0x10\n", "list:1: ");
	REFUSES("1\n2\0\n3\n", "list:2: ");
	REFUSES("\0", "list:1: ");
	REFUSES("5\n# so\n4\n", "list:3: offset 4 ns comes before the 5 ns of line 1");
	REFUSES("1\n00000000000000000000000000000000000000000000000000000000000000000000000000000000001\n", "list:2: ");
	memset(line, '#', sizeof(line));
	refuses(line, sizeof(line), "a line of more than");
	line[0] = '1'; /* the longest that is allowed */
	parses(line, KTRXER_LIST_LINE_MAX, (const uint64_t[]){ 1 }, 1);
}

static void write_file(const char *path, const char *text, size_t times)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (size_t i = 0; i < times; i++)
		fprintf(file, "%s", text);
	fclose(file);
}

TEST(files)
{
	char directory[] = "/tmp/ktrxer-test-XXXXXX", path[64];
	struct schedule_list list;
	struct ktrxer_error err = { 0 };
	FILE *file;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/list", directory);

	assert_int_equal(schedule_list_load(&list, path, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(schedule_list_load(&list, directory, &err), -EISDIR);
	assert_int_equal(schedule_list_load(&list, "/dev/zero", &err), -EINVAL);

	file = fopen(path, "w"); /* lines that lie across the reader's pieces, in every way */
	assert_non_null(file);
	for (int i = 0; i < 100000; i++)
		fprintf(file, "%*d%*s\n", i % 13, i * 7, i % 5, i % 11 ? "" : "# x");
	fclose(file);
	assert_int_equal(schedule_list_load(&list, path, &err), 0);
	assert_int_equal(list.count, 100000);
	for (int i = 0; i < 100000; i++)
		assert_true(list.offsets_ns[i] == (uint64_t)i * 7);
	schedule_list_free(&list);

	write_file(path, "12", 1); /* no newline at the end */
	assert_int_equal(schedule_list_load(&list, path, &err), 0);
	assert_true(list.count == 1 && list.offsets_ns[0] == 12);
	schedule_list_free(&list);
	write_file(path, "1\n", 9000);
	file = fopen(path, "a");
	assert_non_null(file);
	fprintf(file, "x");
	fclose(file);
	assert_int_equal(schedule_list_load(&list, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, "/list:9001: "));
	unlink(path);
	rmdir(directory);
}

TEST(count_is_bounded)
{
	const size_t lines = (size_t)KTRXER_LIST_MAX + 1;
	struct schedule_list list;
	struct ktrxer_error err = { 0 };
	uint8_t *text = malloc(2 * lines);

	assert_non_null(text);
	for (size_t i = 0; i < lines; i++) {
		text[2 * i] = '1';
		text[2 * i + 1] = '\n';
	}
	assert_int_equal(schedule_list_parse(&list, text, 2 * lines, "list", &err), -E2BIG);
	assert_null(list.offsets_ns);
	assert_int_equal(schedule_list_parse(&list, text, 2 * (lines - 1), "list", &err), 0);
	assert_int_equal(list.count, KTRXER_LIST_MAX);
	schedule_list_free(&list);
	free(text);
}
