/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <cuweir/policy.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "counts.h"
#include "hooks.h"
#include "ledger.h"
#include "message.h"
#include "old_glibc.h"
#include "origins.h"
#include "peaks.h"
#include "pipeline.h"
#include "sites.h"
#include "totals.h"
#include "wants.h"

enum { LEAKS_LISTED = 64 };

static struct cw_modules modules; /* that the report has named */

/* Arrays of characters: pointers would be relocations. */
static const char kind_names[CUWEIR_KIND_COUNT][11] = {
	"", "device", "managed", "host", "registered", "imported", "virtual", "pool", "graph",
};

const char *cw_kind_name(unsigned int kind)
{
	return kind < CUWEIR_KIND_COUNT ? kind_names[kind] : "unknown";
}

/* Asked for, whatever CUWEIR_VERBOSE says. */
static void line(const char *format, ...) CW_PRINTF(1, 2);

static void line(const char *format, ...)
{
	char text[PATH_MAX + 512];
	size_t length = cw_format(text, sizeof(text), "cuweir[%d]: ", (int)getpid());
	va_list arguments;

	va_start(arguments, format);
	length += cw_vformat(text + length, sizeof(text) - length - 1, format, arguments);
	va_end(arguments);
	text[length++] = '\n';
	cw_log_write(text, length);
}

/* Whom the call was made for. */
static void write_callers(uint64_t site)
{
	char place[CW_SITE_TEXT];

	for (unsigned int i = 1; i < cw_stack_frames(site); i++) {
		line("    called from %s", cw_site_text(place, site, i));
	}
}

static void write_peak(int device, unsigned int kind)
{
	struct cw_peak peak;
	char place[CW_SITE_TEXT];

	if (cw_peak_read(device, kind, &peak)) {
		cw_modules_note(&modules, peak.site);
		line("  its peak came after %lld.%c s, by %s from %s",
		     (long long)(peak.after_ns / 1000000000),
		     (int)('0' + peak.after_ns / 100000000 % 10), cw_hook_base(peak.hook),
		     cw_site_text(place, peak.site, 0));
		write_callers(peak.site);
	}
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
	if (cw_total_held(device, kind) != 0) {
		line("  held back by policies: %llu B (%s)",
		     (unsigned long long)cw_total_held(device, kind),
		     cw_human_size(now, cw_total_held(device, kind)));
	}
	write_peak(device, kind);
}

/* "100 B", or "100 to 200 B". */
static const char *size_range(char buffer[64], const struct cw_site *site)
{
	if (site->smallest == site->largest) {
		cw_format(buffer, 64, "%llu B", (unsigned long long)site->largest);
	} else {
		cw_format(buffer, 64, "%llu to %llu B", (unsigned long long)site->smallest,
			  (unsigned long long)site->largest);
	}
	return buffer;
}

/* Where one place holds several: a leak is rarely alone. */
static void write_sites(void)
{
	struct cw_site sites[CW_SITES_SHOWN];
	char place[CW_SITE_TEXT];
	char range[64];
	char size[16];
	size_t all;
	size_t count = cw_sites_collect(sites, CW_SITES_SHOWN, -1, &all);

	for (size_t i = 0; i < count; i++) {
		cw_modules_note(&modules, sites[i].site);
		line("  %llu B (%s) in %llu of %s, %s memory of device %d, by %s from %s",
		     (unsigned long long)sites[i].bytes, cw_human_size(size, sites[i].bytes),
		     (unsigned long long)sites[i].count, size_range(range, &sites[i]),
		     cw_kind_name(sites[i].kind), sites[i].device, cw_hook_base(sites[i].hook),
		     cw_site_text(place, sites[i].site, 0));
		write_callers(sites[i].site);
	}
	if (all > count) {
		line("  and %zu places more", all - count);
	}
}

static void write_modules(void)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < modules.count; i++) {
		line("module %s is %s", cw_module_name(&modules, i),
		     cw_module_path(&modules, i, path));
	}
}

static bool write_leak(const struct cw_record *record, void *argument)
{
	const struct cw_origin *origin = cw_origin_get(record->origin);
	unsigned int *listed = argument;
	char place[CW_SITE_TEXT];

	if (++*listed > LEAKS_LISTED) {
		return false;
	}
	cw_modules_note(&modules, origin->site);
	line("still allocated: %p, %llu B, device %d, by %s%s%s",
	     (void *)(uintptr_t)cw_key_handle(record->address), (unsigned long long)record->size,
	     origin->device, cw_hook_base(origin->hook),
	     origin->site != 0 ? ", called from " : "",
	     origin->site != 0 ? cw_site_text(place, origin->site, 0) : "");
	return true;
}

/* Calls that are no allocations, by name (D-23). */
static void write_wants(void)
{
	for (unsigned int hook = 0; hook < CW_HOOK_COUNT; hook++) {
		uint64_t count = cw_wants_of((enum cw_hook_id)hook);

		if (count != 0) {
			line("%s, which is no allocation, failed for want of memory %llu times",
			     cw_hook_symbol(hook), (unsigned long long)count);
		}
	}
}

void cw_report(void)
{
	uint64_t live = cw_ledger_live();
	unsigned int listed = 0;

	if (strcmp(cw_config.report, "json") == 0) {
		cw_report_json();
		return;
	}
	line("report when libcuweir.so is closed; frees by libraries that are closed later are "
	     "not in it");
	for (int device = -1; device < CW_TOTAL_DEVICES; device++) {
		for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
			write_total(device, kind);
		}
	}
	line("%llu allocations failed for want of memory, %llu retries",
	     (unsigned long long)cw_failed_allocations(), (unsigned long long)cw_retries());
	write_wants();
	line("%llu frees of unknown addresses, %llu allocations without a record",
	     (unsigned long long)cw_untracked_frees(),
	     (unsigned long long)cw_untracked_allocations());
	if (cw_context_lost()) {
		line("context lost: an error ended it, and its memory with it; no leaks are "
		     "listed");
		write_modules();
		return;
	}
	line("%llu allocations still live", (unsigned long long)live);
	write_sites();
	cw_ledger_walk(write_leak, &listed);
	if (listed > LEAKS_LISTED) {
		line("... and %llu more", (unsigned long long)(live - LEAKS_LISTED));
	}
	write_modules();
}
