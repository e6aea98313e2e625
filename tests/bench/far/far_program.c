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
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

/* Pages beside a part with another protection are touched, and other memory needs the room. */
static void neighbours(void) {
  uint8_t* memory = map(16 * kLarge);
  fill(memory + 8 * kLarge, 8 * kLarge, 14);
  CHECK(mprotect(memory + 8 * kLarge, 8 * kLarge, PROT_READ) == 0);
  fill(memory, 8 * kLarge, 15);
  uint8_t* other = map(16 * kLarge);
  fill(other, 16 * kLarge, 16);
  CHECK(holds(memory + 8 * kLarge, 8 * kLarge, 14));
  CHECK(holds(memory, 8 * kLarge, 15) && holds(other, 16 * kLarge, 16));
  CHECK(munmap(memory, 16 * kLarge) == 0 && munmap(other, 16 * kLarge) == 0);
  /* The same in turn needs more memory than there is, unless it is used again. */
  for (int round = 0; round < 40; round++) {
    memory = map(16 * kLarge);
    memset(memory, round + 1, 16 * kLarge);
    CHECK(mprotect(memory, 16 * kLarge, PROT_READ) == 0 && memory[9 * kLarge] == round + 1);
    CHECK(munmap(memory, 16 * kLarge) == 0);
  }
  memory = map(16 * kLarge);
  CHECK(is_zero(memory, 16 * kLarge) && munmap(memory, 16 * kLarge) == 0);
}

/* Remapped parts keep their protection and their file. */
static void remapped_parts(void) {
  uint8_t* memory = map(8 * kLarge);
  fill(memory, 8 * kLarge, 17);
  CHECK(mprotect(memory, 2 * kLarge, PROT_NONE) == 0);
  uint8_t* moved = mremap(memory, 2 * kLarge, 4 * kLarge, MREMAP_MAYMOVE);
  CHECK(moved != MAP_FAILED && mprotect(moved, 4 * kLarge, PROT_READ) == 0);
  CHECK(holds(moved, 2 * kLarge, 17) && is_zero(moved + 2 * kLarge, 2 * kLarge));
  CHECK(munmap(moved, 4 * kLarge) == 0);
  const int file = memfd_create("file", 0);
  CHECK(write(file, memory + 2 * kLarge, 2 * kLarge) == 2 * kLarge);
  CHECK(mmap(memory + 4 * kLarge, 2 * kLarge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
             0) == memory + 4 * kLarge);
  moved = mremap(memory + 4 * kLarge, 2 * kLarge, 2 * kLarge, MREMAP_MAYMOVE | MREMAP_FIXED,
                 memory + 6 * kLarge);
  CHECK(moved == memory + 6 * kLarge && holds(moved, 2 * kLarge, 17 + 2 * kLarge));
  uint8_t byte = 0;
  moved[kPage] = 99;
  CHECK(pread(file, &byte, 1, kPage) == 1 && byte == 99);
  CHECK(holds(memory + 2 * kLarge, 2 * kLarge, 17 + 2 * kLarge));
  CHECK(munmap(memory, 8 * kLarge) == 0 && close(file) == 0);
}

enum { kCounters = 8 * kLarge / kPage };
static volatile bool g_stop;

/* Counts in each page, and says how often. */
static void* count(void* argument) {
  volatile uint64_t* words = argument;
  uintptr_t rounds = 0;
  while (!g_stop) {
    for (size_t page = 0; page < kCounters; page++) words[page * (kPage / 8)]++;
    rounds++;
  }
  return (void*)rounds;
}

/* Parts are locked while other threads store to them. */
static void stores_meanwhile(void) {
  for (int round = 0; round < 4; round++) {
    uint8_t* memory = map(kCounters * kPage);
    uint8_t* other = map(8 * kLarge);
    pthread_t threads[2];
    g_stop = false;
    for (size_t each = 0; each < 2; each++) {
      CHECK(pthread_create(&threads[each], NULL, count, memory + 8 * each) == 0);
    }
    fill(other, 8 * kLarge, 18);
    for (size_t at = 0; at < kCounters * kPage; at += kLarge) {
      CHECK(mlock(memory + at, kLarge / 2) == 0 && munlock(memory + at, kLarge / 2) == 0);
      CHECK(mprotect(memory + at + kLarge / 2, kLarge / 2, PROT_READ | PROT_WRITE | PROT_EXEC) ==
            0);
    }
    g_stop = true;
    for (size_t each = 0; each < 2; each++) {
      void* rounds = NULL;
      CHECK(pthread_join(threads[each], &rounds) == 0);
      for (size_t page = 0; page < kCounters; page++) {
        uint64_t counted;
        memcpy(&counted, memory + page * kPage + 8 * each, 8);
        CHECK(counted == (uintptr_t)rounds);
      }
    }
    CHECK(holds(other, 8 * kLarge, 18));
    CHECK(munmap(memory, kCounters * kPage) == 0 && munmap(other, 8 * kLarge) == 0);
  }
}

static uint8_t* g_handled;
static volatile unsigned g_signals;

/* A handler that uses memory which may be elsewhere. */
static void handle(int number) {
  (void)number;
  g_handled[(g_signals % 1024) * kPage]++;
  g_signals++;
}

/* Signals come while the program maps and drops memory. */
static void signals(void) {
  g_handled = map(1024 * kPage);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  struct sigaction before;
  CHECK(sigaction(SIGALRM, &action, &before) == 0);
  const struct itimerval often = {{0, 500}, {0, 500}};
  const struct itimerval never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  for (int round = 0; round < 30; round++) {
    uint8_t* memory = map(12 * kLarge);
    memset(memory, 1, 12 * kLarge);
    CHECK(madvise(memory, 2 * kLarge, MADV_DONTNEED) == 0 && memory[0] == 0);
    CHECK(mprotect(memory + 2 * kLarge, kLarge, PROT_READ) == 0 && memory[2 * kLarge] == 1);
    CHECK(munmap(memory, 12 * kLarge) == 0);
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && sigaction(SIGALRM, &before, NULL) == 0);
  unsigned handled = 0;
  for (size_t page = 0; page < 1024; page++) handled += g_handled[page * kPage];
  /* Each page counts modulo 256. */
  CHECK(g_signals > 0 && (g_signals - handled) % 256 == 0);
  CHECK(munmap(g_handled, 1024 * kPage) == 0);
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

static size_t resident_pages(void) {
  size_t size = 0;
  size_t resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%zu %zu", &size, &resident) == 2);
  fclose(file);
  return resident;
}

/* A child of fork that goes on has the parts that moved back, and memory of its own. */
static void child_allocates(void) {
  uint8_t* memory = map(8 * kLarge);
  fill(memory, 8 * kLarge, 19);
  CHECK(mprotect(memory, kLarge, PROT_READ) == 0);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(holds(memory, kLarge, 19) && mprotect(memory, kLarge, PROT_READ | PROT_WRITE) == 0);
    CHECK(madvise(memory, kLarge / 2, MADV_DONTNEED) == 0 && is_zero(memory, kLarge / 2));
    CHECK(munmap(memory, kLarge) == 0);
    const size_t before = resident_pages();
    for (int round = 0; round < 40; round++) {
      uint8_t* block = malloc(12 * kLarge);
      CHECK(block != NULL);
      memset(block, round, 12 * kLarge);
      free(block);
      block = map(12 * kLarge);
      memset(block, 1, 12 * kLarge);
      CHECK(madvise(block, 12 * kLarge, MADV_DONTNEED) == 0 && is_zero(block, 12 * kLarge));
      CHECK(munmap(block, 12 * kLarge) == 0);
    }
    CHECK(resident_pages() < before + 16 * kLarge / kPage);
    _exit(0);
  }
  int status = 1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(holds(memory, 8 * kLarge, 19) && munmap(memory, 8 * kLarge) == 0);
}

/* Daemons close all numbers one by one, and open their own files then. */
static void closed_numbers(void) {
  uint8_t* memory = map(16 * kLarge);
  fill(memory, 16 * kLarge, 20);
  for (int number = 3; number < 1024; number++) close(number);
  int files[24];
  for (int each = 0; each < 24; each++) {
    files[each] = memfd_create("file", 0);
    CHECK(files[each] >= 0 && files[each] < 100 && write(files[each], "content", 7) == 7);
  }
  CHECK(dup2(files[0], 60) == 60 && close(60) == 0);
  CHECK(holds(memory, 16 * kLarge, 20));
  fill(memory, 16 * kLarge, 21);
  CHECK(holds(memory, 16 * kLarge, 21));
  for (int each = 0; each < 24; each++) {
    char text[16];
    CHECK(pread(files[each], text, sizeof text, 0) == 7 && memcmp(text, "content", 7) == 0);
    CHECK(close(files[each]) == 0);
  }
  CHECK(munmap(memory, 16 * kLarge) == 0);
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

/* All memory is locked, with parts of it elsewhere. Nothing becomes remote after that. */
static void locked_memory(void) {
  uint8_t* memory = map(16 * kLarge);
  fill(memory, 16 * kLarge, 22);
  CHECK(mlockall(MCL_CURRENT) == 0);
  CHECK(holds(memory, 16 * kLarge, 22));
  uint8_t* other = map(16 * kLarge);
  fill(other, 16 * kLarge, 23);
  CHECK(munlockall() == 0);
  fill(memory, 8 * kLarge, 24);
  CHECK(madvise(memory + 8 * kLarge, 8 * kLarge, MADV_DONTNEED) == 0);
  CHECK(holds(memory, 8 * kLarge, 24) && is_zero(memory + 8 * kLarge, 8 * kLarge));
  CHECK(holds(other, 16 * kLarge, 23));
  CHECK(munmap(memory, 16 * kLarge) == 0 && munmap(other, 16 * kLarge) == 0);
}

/* far_program [pageable]: with the word, no page is locked, for a cgroup that holds less than the
 * program's memory. */
int main(int count, char** words) {
  pinned_pages();
  blocks();
  mappings();
  system_calls();
  neighbours();
  remapped_parts();
  stores_meanwhile();
  signals();
  threads();
  child_allocates();
  closed_numbers();
  others();
  if (count < 2 || strcmp(words[1], "pageable") != 0) locked_memory();
  printf("all is as it must be\n");
  return 0;
}
