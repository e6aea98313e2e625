/* SPDX-License-Identifier: Apache-2.0
 *
 * An ordinary program: it knows nothing of remote memory and does with large mappings and blocks
 * what programs do. It is run alone and under `rocegw-run --far`; both must print the same.
 * Exit status: 0, 1 something was not as it must be. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Large blocks are multiples of kLarge. */
enum { kPage = 4096, kLarge = 1 << 19 };

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, strerror(errno)); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

static void fill(uint8_t* memory, size_t bytes, uint64_t seed) {
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = (seed + at) * 0x9E3779B97F4A7C15u;
    memcpy(memory + at, &word, 8);
  }
}

static bool holds(const uint8_t* memory, size_t bytes, uint64_t seed) {
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = (seed + at) * 0x9E3779B97F4A7C15u;
    if (memcmp(memory + at, &word, 8) != 0) return false;
  }
  return true;
}

static bool is_zero(const uint8_t* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at++) {
    if (memory[at] != 0) return false;
  }
  return true;
}

static uint8_t* map(size_t bytes) {
  uint8_t* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

static void blocks(void) {
  uint8_t* block = malloc(3 * kLarge + 5);
  CHECK(block != NULL && malloc_usable_size(block) >= 3 * kLarge + 5);
  fill(block, 3 * kLarge, 1);
  /* Grows, shrinks to a small block, and grows again. */
  block = realloc(block, 12 * kLarge);
  CHECK(block != NULL && holds(block, 3 * kLarge, 1));
  fill(block, 12 * kLarge, 2);
  block = realloc(block, 1000);
  CHECK(block != NULL && holds(block, 1000, 2));
  block = realloc(block, 8 * kLarge);
  CHECK(block != NULL && holds(block, 1000, 2));
  free(block);
  /* A block that is allocated again is zero where calloc says so. */
  for (int round = 0; round < 3; round++) {
    block = calloc(2 * kLarge, 3);
    CHECK(block != NULL && is_zero(block, 6 * kLarge));
    fill(block, 6 * kLarge, 3);
    free(block);
  }
  void* aligned = NULL;
  CHECK(posix_memalign(&aligned, kPage, 2 * kLarge) == 0 && (uintptr_t)aligned % kPage == 0);
  free(aligned);
  aligned = aligned_alloc(2 * kLarge, 4 * kLarge);
  CHECK(aligned != NULL && (uintptr_t)aligned % (2 * kLarge) == 0);
  free(aligned);
  volatile size_t too_large = SIZE_MAX / 2;
  CHECK(calloc(too_large, 4) == NULL);
}

static void mappings(void) {
  uint8_t* memory = map(16 * kLarge);
  CHECK(is_zero(memory, 16 * kLarge));
  fill(memory, 16 * kLarge, 4);
  /* Pages in the middle go, and the others stay. */
  CHECK(munmap(memory + 4 * kLarge, 4 * kLarge) == 0);
  CHECK(holds(memory, 4 * kLarge, 4) && holds(memory + 8 * kLarge, 8 * kLarge, 4 + 8 * kLarge));
  /* Dropped pages are zero. */
  CHECK(madvise(memory + kLarge, kLarge, MADV_DONTNEED) == 0);
  CHECK(holds(memory, kLarge, 4) && is_zero(memory + kLarge, kLarge) &&
        holds(memory + 2 * kLarge, 2 * kLarge, 4 + 2 * kLarge));
  CHECK(madvise(memory, 4 * kLarge, MADV_SEQUENTIAL) == 0);
  /* Protection that a window has not. */
  CHECK(mprotect(memory + 2 * kLarge, kLarge, PROT_READ) == 0);
  CHECK(holds(memory + 2 * kLarge, 2 * kLarge, 4 + 2 * kLarge));
  CHECK(mprotect(memory + 2 * kLarge, kLarge, PROT_READ | PROT_WRITE) == 0);
  fill(memory + 2 * kLarge, kLarge, 5);
  CHECK(holds(memory + 2 * kLarge, kLarge, 5));
  CHECK(mlock(memory + 3 * kLarge + 10, kPage) == 0 &&
        munlock(memory + 3 * kLarge + 10, kPage) == 0);
  CHECK(holds(memory + 3 * kLarge, kLarge, 4 + 3 * kLarge));
  /* A fixed mapping over a part. */
  CHECK(mmap(memory + 8 * kLarge, kLarge, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory + 8 * kLarge);
  CHECK(is_zero(memory + 8 * kLarge, kLarge) &&
        holds(memory + 9 * kLarge, 7 * kLarge, 4 + 9 * kLarge));
  CHECK(munmap(memory, 16 * kLarge) == 0);
  /* Growing and shrinking mappings. */
  memory = map(4 * kLarge);
  fill(memory, 4 * kLarge, 6);
  memory = mremap(memory, 4 * kLarge, 12 * kLarge, MREMAP_MAYMOVE);
  CHECK(memory != MAP_FAILED && holds(memory, 4 * kLarge, 6) &&
        is_zero(memory + 4 * kLarge, 8 * kLarge));
  CHECK(mremap(memory, 12 * kLarge, 2 * kLarge, 0) == memory && holds(memory, 2 * kLarge, 6));
  uint8_t* wanted = map(2 * kLarge);
  CHECK(mremap(memory, 2 * kLarge, 2 * kLarge, MREMAP_MAYMOVE | MREMAP_FIXED, wanted) == wanted);
  CHECK(holds(wanted, 2 * kLarge, 6) && munmap(wanted, 2 * kLarge) == 0);
  /* A fixed mapping where there was one before, and others beside it. */
  CHECK(mmap(wanted, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == wanted);
  fill(wanted, kLarge, 12);
  memory = map(16 * kLarge);
  fill(memory, 16 * kLarge, 13);
  CHECK(holds(wanted, kLarge, 12) && holds(memory, 16 * kLarge, 13));
  CHECK(munmap(wanted, kLarge) == 0 && munmap(memory, 16 * kLarge) == 0);
}

/* System calls read and write memory that is not here. */
static void system_calls(void) {
  uint8_t* memory = map(16 * kLarge);
  fill(memory, 16 * kLarge, 7);
  const int file = memfd_create("file", 0);
  CHECK(write(file, memory, 16 * kLarge) == 16 * kLarge && lseek(file, 0, SEEK_SET) == 0);
  uint8_t* copy = malloc(16 * kLarge);
  CHECK(copy != NULL && read(file, copy, 16 * kLarge) == 16 * kLarge &&
        holds(copy, 16 * kLarge, 7));
  close(file);
  free(copy);
  CHECK(munmap(memory, 16 * kLarge) == 0);
}

/* The kernel pins pages for a device or a ring, and writes to them when other pages were needed
 * here meanwhile. */
static void pinned_pages(void) {
  struct io_uring_params params = {0};
  const int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
  if (ring < 0) {
    printf("no io_uring here\n");
    return;
  }
  const size_t bytes = 64 * kPage;
  uint8_t* memory = map(2 * kLarge);
  fill(memory, 2 * kLarge, 9);
  const struct iovec buffer = {memory, bytes};
  CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1) == 0);
  uint8_t* other = map(16 * kLarge);
  fill(other, 16 * kLarge, 10);
  const int file = memfd_create("file", 0);
  fill(other, bytes, 11);
  CHECK(write(file, other, bytes) == (ssize_t)bytes);
  const size_t ring_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
  uint8_t* submission =
      mmap(NULL, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* entries = mmap(NULL, params.sq_entries * sizeof *entries,
                                      PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  CHECK(submission != MAP_FAILED && entries != MAP_FAILED);
  entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_READ_FIXED,
                                     .fd = file,
                                     .addr = (uintptr_t)memory,
                                     .len = (unsigned)bytes};
  ((unsigned*)(submission + params.sq_off.array))[0] = 0;
  __atomic_store_n((unsigned*)(submission + params.sq_off.tail), 1, __ATOMIC_RELEASE);
  CHECK(holds(memory, bytes, 9));
  CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
  CHECK(holds(memory, bytes, 11));
  CHECK(holds(memory + bytes, 2 * kLarge - bytes, 9 + bytes));
  CHECK(munmap(submission, ring_bytes) == 0);
  CHECK(munmap(entries, params.sq_entries * sizeof *entries) == 0);
  CHECK(close(file) == 0 && close(ring) == 0);
  CHECK(munmap(other, 16 * kLarge) == 0 && munmap(memory, 2 * kLarge) == 0);
}

static void* share(void* argument) {
  const uint64_t number = (uintptr_t)argument;
  for (int round = 0; round < 2; round++) {
    uint8_t* memory = round % 2 == 0 ? map(4 * kLarge) : malloc(4 * kLarge);
    fill(memory, 4 * kLarge, number);
    if (!holds(memory, 4 * kLarge, number)) return memory;
    if (round % 2 == 0) {
      munmap(memory, 4 * kLarge);
    } else {
      free(memory);
    }
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  for (uintptr_t each = 0; each < 4; each++) {
    CHECK(pthread_create(&all[each], NULL, share, (void*)(each * 1000000007)) == 0);
  }
  for (int each = 0; each < 4; each++) {
    void* wrong = NULL;
    CHECK(pthread_join(all[each], &wrong) == 0 && wrong == NULL);
  }
}

/* Programs that close all descriptors keep their memory; children that start others need none. */
static void others(void) {
  uint8_t* memory = map(16 * kLarge);
  fill(memory, 16 * kLarge, 8);
  const int output = dup(STDOUT_FILENO);
  closefrom(output + 1);
  CHECK(close(output) == 0);
  CHECK(holds(memory, 16 * kLarge, 8));
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(1);
  }
  int status = 1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(system("true") == 0);
  CHECK(holds(memory, 16 * kLarge, 8) && munmap(memory, 16 * kLarge) == 0);
}

int main(void) {
  pinned_pages();
  blocks();
  mappings();
  system_calls();
  threads();
  others();
  printf("all is as it must be\n");
  return 0;
}
