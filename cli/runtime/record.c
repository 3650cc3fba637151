/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record.h"

#include "fields_common.h"
#include <ctype.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { BOOT_ID_LENGTH = 36 };

/* "8c1f…-…": monotonic times of two records can be compared only when this is the same. */
static const char *read_boot_id(char id[BOOT_ID_LENGTH + 1])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, id, BOOT_ID_LENGTH);
	close(fd);
	if (n != BOOT_ID_LENGTH)
		return NULL;
	id[BOOT_ID_LENGTH] = '\0';
	for (int i = 0; i < BOOT_ID_LENGTH; i++)
		if (!isxdigit((unsigned char)id[i]) && id[i] != '-')
			return NULL;
	return id;
}

void record_start(const struct cli *cli, struct json *json)
{
	char boot_id[BOOT_ID_LENGTH + 1];
	struct ktrxer_clock_pair pair;
	struct utsname host;

	start_schema(json, RECORD_SCHEMA);
	start_version(json, ktrxer_version());
	start_command(json, cli->command->name);
	start_argv_open(json);
	for (int i = 0; i < cli->argc; i++)
		json_string(json, NULL, cli->argv[i]);
	json_array_end(json);
	start_boot_id(json, read_boot_id(boot_id));
	start_hostname(json, uname(&host) ? NULL : host.nodename);
	start_kernel(json, uname(&host) ? NULL : host.release);
	ktrxer_clock_pair_read(&pair);
	start_clock_open(json);
	start_clock_mono_ns(json, pair.mono_ns);
	start_clock_real_ns(json, pair.real_ns);
	start_clock_bound_ns(json, pair.bound_ns);
	json_object_end(json);
	if (cli->common.start_at_real_ns)
		start_start_at_real_ns(json, cli->common.start_at_real_ns);
}
