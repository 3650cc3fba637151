/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "record.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
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

	json_i64(json, "schema", RECORD_SCHEMA);
	json_string(json, "version", ktrxer_version());
	json_string(json, "command", cli->command->name);
	json_array(json, "argv");
	for (int i = 0; i < cli->argc; i++)
		json_string(json, NULL, cli->argv[i]);
	json_array_end(json);
	json_string(json, "boot_id", read_boot_id(boot_id));
	json_string(json, "hostname", uname(&host) ? NULL : host.nodename);
	json_string(json, "kernel", uname(&host) ? NULL : host.release);
	ktrxer_clock_pair_read(&pair);
	json_object(json, "clock");
	json_u64(json, "mono_ns", pair.mono_ns);
	json_i64(json, "real_ns", pair.real_ns);
	json_u64(json, "bound_ns", pair.bound_ns);
	json_object_end(json);
	if (cli->common.start_at_real_ns)
		json_u64(json, "start_at_real_ns", cli->common.start_at_real_ns);
}
