// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/preload/program_memory.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "gateway/far/preload/next.h"

namespace rocegw::far {
namespace {

enum class State : int { kUnopened, kOpen, kFailed, kChild };

__attribute__((tls_model("initial-exec"))) thread_local bool t_inside = false;
std::atomic<State> g_state{State::kUnopened};
std::atomic<FarMemory*> g_memory{nullptr};  // never deleted: threads use it until the process ends
pthread_mutex_t g_opening = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> g_told_full{false}, g_told_fork{false};

// Trivial, so that it can be read before constructors of this library have run.
const FarSettings& TheSettings() {
  static const FarSettings* const kSettings = [] {
    const Inside inside;
    return new FarSettings(FarSettings::FromEnvironment());
  }();
  return *kSettings;
}

void Say(const std::string& text) {
  const std::string line = "rocegw-far: " + text + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void BeforeFork() {
  if (g_state.load() == State::kOpen && !g_told_fork.exchange(true)) {
    Say("the program forks: its child has no remote memory, and ends when it touches some");
  }
}

void InChild() {
  if (g_state.load() != State::kUnopened) g_state = State::kChild;
}

void ReportAtEnd() {
  FarMemory* memory = g_memory.load();
  if (g_state.load() != State::kOpen || memory == nullptr) return;
  const Inside inside;
  Say(memory->Report());
}

// Open descriptors, in ascending order.
std::vector<int> Descriptors() {
  std::vector<int> found;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(directory)) found.push_back(fd);
  }
  closedir(directory);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<int>& Kept() {
  static auto* const kKept = new std::vector<int>;
  return *kKept;
}

void Open() {
  const Inside inside;
  const std::vector<int> before_opening = Descriptors();
  // Signals are for the program's threads; threads inherit the mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto memory = FarMemory::Open(TheSettings());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!memory.ok()) {
    Say("no remote memory, the program goes on without: " + memory.status().text());
    g_state = State::kFailed;
    return;
  }
  const std::vector<int> opened = Descriptors();
  std::set_difference(opened.begin(), opened.end(), before_opening.begin(), before_opening.end(),
                      std::back_inserter(Kept()));
  g_memory = memory.value().release();
  pthread_atfork(BeforeFork, nullptr, InChild);
  if (TheSettings().report) std::atexit(ReportAtEnd);
  g_state = State::kOpen;
}

}  // namespace

Inside::Inside() : before_(t_inside) { t_inside = true; }
Inside::~Inside() { t_inside = before_; }
bool Inside::Is() { return t_inside; }

FarMemory* ForMapping(size_t bytes) {
  // Most calls end here.
  constexpr size_t kFewest = FarMemory::kPage;
  if (bytes < kFewest || t_inside) return nullptr;
  const State state = g_state.load();
  if (state == State::kFailed || state == State::kChild) return nullptr;
  if (bytes < TheSettings().least || TheSettings().fraction == 0) return nullptr;
  if (state == State::kUnopened) {
    pthread_mutex_lock(&g_opening);
    if (g_state.load() == State::kUnopened) Open();
    pthread_mutex_unlock(&g_opening);
  }
  return Opened();
}

FarMemory* Opened() { return g_state.load() == State::kOpen ? g_memory.load() : nullptr; }

FarMemory* Owner(const void* at) {
  FarMemory* memory = Opened();
  return memory != nullptr && memory->Contains(at) ? memory : nullptr;
}

bool IsOfParent(const void* at) {
  const FarMemory* memory = g_memory.load();
  return g_state.load() == State::kChild && memory != nullptr && memory->Contains(at);
}

const std::vector<int>& KeptDescriptors() { return Kept(); }

void Close() {
  if (g_state.load() == State::kUnopened) g_state = State::kFailed;
}

}  // namespace rocegw::far

// Threads of this library are inside for ever. Not exported: only calls of this library come here.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  struct Start {
    void* (*run)(void*);
    void* argument;
  };
  auto* start = new (std::nothrow) Start{run, argument};
  if (start == nullptr) return ENOMEM;
  const auto begin = [](void* given) -> void* {
    const Start copy = *static_cast<Start*>(given);
    delete static_cast<Start*>(given);
    const rocegw::far::Inside inside;
    return copy.run(copy.argument);
  };
  const int error = rocegw::far::Next().pthread_create(thread, attributes, begin, start);
  if (error != 0) delete start;
  return error;
}
