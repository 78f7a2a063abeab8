/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one line of JSON, for tools: in one write, as long as there is room for it. */
#include <cuweir/policy.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"
#include "counts.h"
#include "ledger.h"
#include "message.h"
#include "peaks.h"
#include "report.h"
#include "sites.h"
#include "totals.h"
#include "wants.h"

enum { BUFFER_SIZE = 2 << 20, SITES_MAX = 1024, PIECE_MAX = 512 };

struct out {
	char *text;
	size_t size;
	size_t length;
	struct cw_modules modules;
};

static void put(struct out *out, const char *format, ...) CW_PRINTF(2, 3);

/* At most PIECE_MAX of it: names, which may be longer, are put by the character. */
static void put(struct out *out, const char *format, ...)
{
	va_list arguments;

	if (out->size - out->length < PIECE_MAX) {
		cw_log_write(out->text, out->length);
		out->length = 0;
	}
	va_start(arguments, format);
	out->length += cw_vformat(out->text + out->length, out->size - out->length, format,
				  arguments);
	va_end(arguments);
}

/* The length of the UTF-8 sequence at `text`, 0 where there is none. */
static size_t sequence_length(const unsigned char *text)
{
	size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2
					  : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	/* Overlong forms, surrogates, and what is beyond the last character. */
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f)) {
		return 0;
	}
	return length;
}

/* Names of files may hold any byte; one that is no character becomes \udcXX, as in Python. */
static void put_string(struct out *out, const char *string)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *text = (const unsigned char *)string;

	put(out, "\"");
	while (*text != '\0') {
		size_t length = sequence_length(text);

		if (length == 0) {
			put(out, "\\udc%c%c", digits[*text >> 4], digits[*text & 15]);
			length = 1;
		} else if (*text < 0x20) {
			put(out, "\\u00%c%c", digits[*text >> 4], digits[*text & 15]);
		} else {
			put(out, *text == '"' || *text == '\\' ? "\\" : "");
			for (size_t i = 0; i < length; i++) {
				put(out, "%c", text[i]);
			}
		}
		text += length;
	}
	put(out, "\"");
}

static void put_place(struct out *out, uint64_t site)
{
	char place[CW_SITE_TEXT];

	cw_modules_note(&out->modules, site);
	put(out, "\"site\":");
	if (site != 0 && strcmp(cw_site_text(place, site, 0), CW_SITE_UNKNOWN) != 0) {
		put_string(out, place);
	} else {
		put(out, "null");
	}
	for (unsigned int i = 1; i < cw_stack_frames(site); i++) {
		put(out, i == 1 ? ",\"callers\":[" : ",");
		put_string(out, cw_site_text(place, site, i));
	}
	put(out, cw_stack_frames(site) > 1 ? "]" : "");
}

static void put_total(struct out *out, int device, unsigned int kind, bool *first)
{
	struct cw_peak peak;
	uint64_t allocations;
	uint64_t frees;

	cw_counts_read(device, kind, &allocations, &frees);
	if (allocations == 0 && cw_total_peak(device, kind) == 0) {
		return;
	}
	put(out, "%s{\"device\":%d,\"kind\":\"%s\",\"current\":%llu,\"peak\":%llu,\"held\":%llu,"
		 "\"allocations\":%llu,\"frees\":%llu", *first ? "" : ",", device,
	    cw_kind_name(kind), (unsigned long long)cw_total_current(device, kind),
	    (unsigned long long)cw_total_peak(device, kind),
	    (unsigned long long)cw_total_held(device, kind), (unsigned long long)allocations,
	    (unsigned long long)frees);
	if (cw_peak_read(device, kind, &peak)) {
		put(out, ",\"peak_after_ms\":%lld,\"peak_by\":{\"call\":\"%s\",",
		    (long long)(peak.after_ns / 1000000), cw_hook_base(peak.hook));
		put_place(out, peak.site);
		put(out, "}");
	}
	put(out, "}");
	*first = false;
}

static void put_sites(struct out *out)
{
	static struct cw_site sites[SITES_MAX];
	size_t all;
	size_t count = cw_sites_collect(sites, SITES_MAX, -1, &all);

	put(out, ",\"live_by_site\":[");
	for (size_t i = 0; i < count; i++) {
		const struct cw_site *site = &sites[i];

		put(out, "%s{\"bytes\":%llu,\"count\":%llu,\"smallest\":%llu,\"largest\":%llu,"
			 "\"device\":%d,\"kind\":\"%s\",\"call\":\"%s\",", i > 0 ? "," : "",
		    (unsigned long long)site->bytes, (unsigned long long)site->count,
		    (unsigned long long)site->smallest, (unsigned long long)site->largest,
		    site->device, cw_kind_name(site->kind), cw_hook_base(site->hook));
		put_place(out, site->site);
		put(out, "}");
	}
	put(out, "],\"sites\":%zu", all);
}

static void put_modules(struct out *out)
{
	char path[PATH_MAX];

	put(out, ",\"modules\":[");
	for (size_t i = 0; i < out->modules.count; i++) {
		put(out, "%s{\"name\":", i > 0 ? "," : "");
		put_string(out, cw_module_name(&out->modules, i));
		put(out, ",\"path\":");
		put_string(out, cw_module_path(&out->modules, i, path));
		put(out, "}");
	}
	put(out, "]");
}

/* Calls that are no allocations (D-23); nothing where there are none. */
static void put_wants(struct out *out)
{
	const char *before = ",\"wants\":[";

	for (unsigned int hook = 0; hook < CW_HOOK_COUNT; hook++) {
		uint64_t count = cw_wants_of((enum cw_hook_id)hook);

		if (count != 0) {
			put(out, "%s{\"call\":\"%s\",\"failed\":%llu}", before,
			    cw_hook_symbol(hook), (unsigned long long)count);
			before = ",";
		}
	}
	put(out, "%s", before[1] == '\0' ? "]" : "");
}

void cw_report_json(void)
{
	char small[8 * PIECE_MAX];
	struct out out = { .text = small, .size = sizeof(small) };
	bool first = true;
	void *memory = mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED) {
		out.text = memory;
		out.size = BUFFER_SIZE;
	}
	put(&out, "{\"cuweir\":\"report\",\"version\":1,\"pid\":%d,\"totals\":[", (int)getpid());
	for (int device = -1; device < CW_TOTAL_DEVICES; device++) {
		for (unsigned int kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
			put_total(&out, device, kind, &first);
		}
	}
	put(&out, "],\"live\":%llu,\"failed\":%llu,\"retries\":%llu,\"unknown_frees\":%llu,"
		  "\"unrecorded\":%llu,\"context_lost\":%s",
	    (unsigned long long)cw_ledger_live(), (unsigned long long)cw_failed_allocations(),
	    (unsigned long long)cw_retries(), (unsigned long long)cw_untracked_frees(),
	    (unsigned long long)cw_untracked_allocations(), cw_context_lost() ? "true" : "false");
	put_wants(&out);
	put_sites(&out);
	put_modules(&out);
	put(&out, "}\n");
	cw_log_write(out.text, out.length);
	/* Not unmapped: the process ends. */
}
