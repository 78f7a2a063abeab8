/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <cuweir/policy.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "counts.h"
#include "elf_read.h"
#include "hooks.h"
#include "ledger.h"
#include "message.h"
#include "old_glibc.h"
#include "origins.h"
#include "pipeline.h"
#include "totals.h"

enum { LEAKS_LISTED = 64 };

static const char *const kind_names[CUWEIR_KIND_COUNT] = {
	"", "device", "managed", "host", "registered", "imported", "virtual", "pool", "graph",
};

/* Asked for, whatever CUWEIR_VERBOSE says. */
static void line(const char *format, ...) CW_PRINTF(1, 2);

static void line(const char *format, ...)
{
	char text[512];
	size_t length = cw_format(text, sizeof(text), "cuweir[%d]: ", (int)getpid());
	va_list arguments;

	va_start(arguments, format);
	length += cw_vformat(text + length, sizeof(text) - length - 1, format, arguments);
	va_end(arguments);
	text[length++] = '\n';
	cw_write_all(STDERR_FILENO, text, length);
}

static void write_total(int device, unsigned int kind)
{
	uint64_t allocations;
	uint64_t frees;
	char now[16];
	char peak[16];

	cw_counts_read(device, kind, &allocations, &frees);
	if (allocations == 0 && cw_total_peak(device, kind) == 0) {
		return;
	}
	line("device %d, %s memory: %llu B (%s) in use, peak %llu B (%s), %llu allocations, "
	     "%llu frees",
	     device, kind_names[kind], (unsigned long long)cw_total_current(device, kind),
	     cw_human_size(now, cw_total_current(device, kind)),
	     (unsigned long long)cw_total_peak(device, kind),
	     cw_human_size(peak, cw_total_peak(device, kind)), (unsigned long long)allocations,
	     (unsigned long long)frees);
}

static bool write_leak(const struct cw_record *record, void *argument)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);
	unsigned int *listed = argument;
	Dl_info module;

	if (++*listed > LEAKS_LISTED) {
		return false;
	}
	if (origin->site != 0 && dladdr((void *)(uintptr_t)origin->site, &module) != 0 &&
	    module.dli_fname != NULL) {
		line("still allocated: %p, %llu B, device %d, by %s, called from %s+0x%llx",
		     (void *)(uintptr_t)cw_key_handle(record->address), (unsigned long long)record->size,
		     origin->device, cw_hooks[origin->hook].base,
		     cw_elf_basename(module.dli_fname),
		     (unsigned long long)(origin->site - (uintptr_t)module.dli_fbase));
	} else {
		line("still allocated: %p, %llu B, device %d, by %s",
		     (void *)(uintptr_t)cw_key_handle(record->address), (unsigned long long)record->size,
		     origin->device, cw_hooks[origin->hook].base);
	}
	return true;
}

void cw_report(void)
{
	uint64_t live = cw_ledger_live();
	unsigned int listed = 0;

	line("report when libcuweir.so is closed; frees by libraries that are closed later are "
	     "not in it");
	for (int device = -1; device < CW_TOTAL_DEVICES; device++) {
		for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
			write_total(device, kind);
		}
	}
	line("%llu frees of unknown addresses, %llu allocations without a record",
	     (unsigned long long)cw_untracked_frees(),
	     (unsigned long long)cw_untracked_allocations());
	if (cw_context_lost()) {
		line("context lost: an error ended it, and its memory with it; no leaks are "
		     "listed");
		return;
	}
	line("%llu allocations still live", (unsigned long long)live);
	cw_ledger_walk(write_leak, &listed);
	if (listed > LEAKS_LISTED) {
		line("... and %llu more", (unsigned long long)(live - LEAKS_LISTED));
	}
}

void cw_report_result(const char *path)
{
	char text[96];
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	size_t length = cw_format(text, sizeof(text), "live %llu refused %llu\n",
				  (unsigned long long)(cw_context_lost() ? 0 : cw_ledger_live()),
				  (unsigned long long)cw_failed_allocations());

	if (fd >= 0) {
		cw_write_all(fd, text, length);
		close(fd);
	}
}
