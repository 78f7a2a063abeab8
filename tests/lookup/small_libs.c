/* SPDX-License-Identifier: Apache-2.0 */
/* The small libraries of the look-up tests, one per LIB_* macro. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>

#if defined(LIB_NEXT_A)
/* Wraps foo() of the library behind it. */
int foo(void);
int foo(void)
{
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "foo");
	volatile int result = next == NULL ? -100 : next();

	return result + 1;
}
#elif defined(LIB_NEXT_B)
int foo(void);
int foo(void)
{
	return 41;
}
#elif defined(LIB_DNN_A)
/* Hands on to a function of the same name in another library, through that one's handle. */
int cudnnCreate(const char *path);
int cudnnCreate(const char *path)
{
	int (*next)(const char *) =
		(int (*)(const char *))dlsym(dlopen(path, RTLD_NOW), "cudnnCreate");
	volatile int result = next == NULL ? -1 : next(path);

	return result;
}
#elif defined(LIB_DNN_B)
#define RETURNS(name, value) \
	int name(void);      \
	int name(void)       \
	{                    \
		return value; \
	}
RETURNS(cudnnCreate, 7)
RETURNS(curl_x, 8)
RETURNS(custom, 9)
RETURNS(cublasCreate, 10)
RETURNS(nvmlesque, 11)
RETURNS(cu, 12)
RETURNS(c, 13)
#elif defined(LIB_FOREIGN)
/* Functions with CUDA's names that are somebody else's. */
int cudaMalloc(void);
int cudaMalloc(void)
{
	return 4711;
}
int cuMemAlloc_v2(void);
int cuMemAlloc_v2(void)
{
	return 4712;
}
#elif defined(LIB_USER)
/* Loaded RTLD_LOCAL with a CUDA library behind it; asks for what it can see itself. */
extern int fake_calls;
void *user_default(const char *name);
void *user_default(const char *name)
{
	void *volatile found = fake_calls < 0 ? NULL : dlsym(RTLD_DEFAULT, name);

	return found;
}
#elif defined(LIB_LINKED)
/* Linked to one of several runtimes. */
int cudaMalloc(void **ptr, size_t size);
int linked_malloc(void);
int linked_malloc(void)
{
	volatile int result = cudaMalloc(NULL, 0);

	return result;
}
#elif defined(LIB_LAZY)
/* Defines a driver function itself and loads the driver at the first call, as frameworks do. */
const char *lazy_driver;
int cuMemAlloc_v2(void *pointer, size_t size);
int cuMemAlloc_v2(void *pointer, size_t size)
{
	static int (*real)(void *, size_t);

	if (real == NULL) {
		real = (int (*)(void *, size_t))dlsym(dlopen(lazy_driver, RTLD_NOW),
						      "cuMemAlloc_v2");
	}
	return real == NULL ? -1 : real(pointer, size);
}
int lazy_alloc(const char *driver);
int lazy_alloc(const char *driver)
{
	lazy_driver = driver;
	return cuMemAlloc_v2(NULL, 0);
}
#elif defined(LIB_RUNPATH_CALLER)
void *open_dependency(void);
void *open_dependency(void)
{
	void *volatile handle = dlopen("libcw_dep.so", RTLD_NOW);

	return handle;
}
#elif defined(LIB_DEPENDENCY)
int dependency(void);
int dependency(void)
{
	return 5;
}
#elif defined(LIB_SECOND_PRELOAD)
/* Another tool of our kind: interposes dlsym by a plain wrapper, and open by RTLD_NEXT. */
void *dlsym(void *handle, const char *name);
void *dlsym(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (real == NULL) {
#if defined(__x86_64__)
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#else
		real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
#endif
	}
	return real(handle, name);
}
int open(const char *path, int flags, ...);
int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlvsym(RTLD_NEXT, "open", "GLIBC_2.2.5");

	return next(path, flags, 0);
}
#endif
