/* What newer C libraries have and older ones lack, of that which libtilewright.so and the C++
 * library inside of it call. Hidden: nobody else sees it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* 2.32: whether reference counts may be counted without atomics. They may always be with. */
char __libc_single_threaded = 0;

/* 2.33; before, they were functions of other names. The kernel's struct is the library's. */
int stat(const char* path, struct stat* found) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, 0);
}
int lstat(const char* path, struct stat* found) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat* found) { return (int)syscall(SYS_fstat, file, found); }
int stat64(const char* path, struct stat64* found) { return stat(path, (struct stat*)found); }
int lstat64(const char* path, struct stat64* found) { return lstat(path, (struct stat*)found); }
int fstat64(int file, struct stat64* found) { return fstat(file, (struct stat*)found); }

/* 2.36 */
uint32_t arc4random(void) {
  uint32_t number = 0;
  if (syscall(SYS_getrandom, &number, sizeof number, 0) != sizeof number) abort();
  return number;
}

/* 2.30. The time that is left, by the clock that older ones wait with. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* end) {
  enum { SECOND = 1000000000 };
  struct timespec now, until;
  int64_t left, nanoseconds;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, end);
  clock_gettime(clock, &now);
  left = (int64_t)(end->tv_sec - now.tv_sec) * SECOND + (end->tv_nsec - now.tv_nsec);
  if (left <= 0) return ETIMEDOUT;
  clock_gettime(CLOCK_REALTIME, &until);
  nanoseconds = until.tv_nsec + left % SECOND;
  until.tv_sec += (time_t)(left / SECOND + nanoseconds / SECOND);
  until.tv_nsec = (long)(nanoseconds % SECOND);
  return pthread_cond_timedwait(condition, mutex, &until);
}

/* 2.35: where an exception finds the tables of the code at an address. */
typedef struct {
  uintptr_t address;
  struct dl_find_object* found;
} wanted_object;

static int has_address(struct dl_phdr_info* object, size_t size, void* data) {
  wanted_object* const wanted = (wanted_object*)data;
  struct dl_find_object found;
  int i, is_here = 0;
  (void)size;
  memset(&found, 0, sizeof found);
  for (i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) found.dlfo_eh_frame = (void*)start;
    if (part->p_type != PT_LOAD) continue;
    if (found.dlfo_map_start == NULL) found.dlfo_map_start = (void*)start;
    found.dlfo_map_end = (void*)(start + part->p_memsz);
    is_here |= wanted->address >= start && wanted->address < start + part->p_memsz;
  }
  if (!is_here || found.dlfo_eh_frame == NULL) return 0;
  *wanted->found = found;
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  wanted_object wanted = {(uintptr_t)address, found};
  return dl_iterate_phdr(has_address, &wanted) != 0 ? 0 : -1;
}
