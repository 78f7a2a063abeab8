/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver door for code: modules, libraries and launches take memory that is nobody's
 * request. They pass, and where they fail for want of memory, that is counted (D-23).
 */
#include "bodies.h"
#include "resolve.h"
#include "wants.h"

#define UNPACK(...) __VA_ARGS__
#define PASS(body, parameters, arguments)                                                          \
	CUresult body(enum cw_hook_id hook, const void *site, UNPACK parameters)                   \
	{                                                                                          \
		CUresult (*real)parameters = (CUresult(*) parameters)cw_real_of(hook);             \
                                                                                                   \
		(void)site;                                                                        \
		return real != NULL ? cw_want_note(hook, real arguments) : CUDA_ERROR_NOT_FOUND;   \
	}

PASS(cw_module_load, (CUmodule * module, const char *name), (module, name))
PASS(cw_module_load_data, (CUmodule * module, const void *image), (module, image))
PASS(cw_module_load_data_ex,
     (CUmodule * module, const void *image, unsigned int count, CUjit_option *options,
      void **values),
     (module, image, count, options, values))
PASS(cw_library_load,
     (CUlibrary * library, const void *code, CUjit_option *jit, void **jit_values,
      unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count),
     (library, code, jit, jit_values, jit_count, options, values, count))
PASS(cw_library_load_file,
     (CUlibrary * library, const char *name, CUjit_option *jit, void **jit_values,
      unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count),
     (library, name, jit, jit_values, jit_count, options, values, count))
PASS(cw_launch_kernel,
     (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
      unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters,
      void **extra),
     (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
PASS(cw_launch_kernel_ex,
     (const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra),
     (config, f, parameters, extra))
PASS(cw_launch_cooperative,
     (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
      unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
      void **parameters),
     (f, gx, gy, gz, bx, by, bz, shared, stream, parameters))
