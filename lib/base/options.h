/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Structs of a caller that was compiled with older or newer headers: its `size` is not sizeof here. */
#ifndef KTRXER_LIB_OPTIONS_H
#define KTRXER_LIB_OPTIONS_H

#include <ktrxer/base.h>

/*
 * An option struct of the caller's size becomes one of ours. Fields that an older caller lacks are zero. Fields of
 * a newer caller that this library lacks must be zero, because it would ignore them silently. `least` is the end of
 * the struct's first version.
 */
int ktrxer_options_copy(void *to, size_t known, const void *from, size_t size, size_t least, const char *what,
			struct ktrxer_error *err);
/* The same for a struct that begins with its `size`. NULL is refused. */
int ktrxer_options_read(void *to, size_t known, const void *from, size_t least, const char *what,
			struct ktrxer_error *err);

/*
 * Writes a result of `known` bytes to the caller's struct of `size` bytes: an older caller gets the fields that its
 * struct has, and the fields that this library does not know are zero for a newer one.
 */
void ktrxer_result_write(void *to, size_t size, const void *from, size_t known);

#endif
