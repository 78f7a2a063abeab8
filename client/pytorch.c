/* SPDX-License-Identifier: Apache-2.0 */
#include <cuweir/pytorch.h>

#include <dlfcn.h>
#include <stddef.h>

/*
 * PyTorch takes any address for memory, NULL too. What stops it is an exception, which C can have
 * thrown by the C++ library that its caller brings: std::__throw_bad_alloc().
 */
static void throw_bad_alloc(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void (*throw_it)(void) = NULL;

	if (library != NULL) {
		*(void **)&throw_it = dlsym(library, "_ZSt17__throw_bad_allocv");
		dlclose(library); /* the caller has it, too */
	}
	if (throw_it != NULL) {
		throw_it();
	}
}

CUWEIR_EXPORT void *cuweir_torch_alloc(size_t size, int device, void *stream)
{
	void *memory = cuweir_allocate_async(size, 0, 0, stream);

	(void)device;
	if (memory == NULL && size != 0) {
		throw_bad_alloc();
	}
	return memory;
}

CUWEIR_EXPORT void cuweir_torch_free(void *memory, size_t size, int device, void *stream)
{
	(void)size, (void)device;
	(void)cuweir_deallocate_async(memory, stream);
}
