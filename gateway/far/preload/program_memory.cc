// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/preload/program_memory.h"

#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "gateway/far/preload/next.h"
#include "gateway/far/preload/own_descriptors.h"

namespace rocegw::far {
namespace {

enum class State : int { kUnopened, kOpening, kOpen, kFailed, kChild };

__attribute__((tls_model("initial-exec"))) thread_local bool t_inside = false;
std::atomic<State> g_state{State::kUnopened};
std::atomic<FarMemory*> g_memory{nullptr};  // never deleted: threads use it until the process ends
pthread_mutex_t g_opening = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> g_told_full{false}, g_told_fork{false};

// Code of the verbs libraries.
struct Code {
  uintptr_t begin, end;
};
Code g_verbs_code[32];
std::atomic<size_t> g_verbs_codes{0};

bool IsVerbsLibrary(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  for (size_t i = 0; i < g_verbs_codes.load(std::memory_order_acquire); i++) {
    if (at >= g_verbs_code[i].begin && at < g_verbs_code[i].end) return true;
  }
  return false;
}

// Adds the verbs libraries that are loaded. One thread at a time.
void FindVerbsLibraries() {
  const auto add = [](dl_phdr_info* library, size_t, void*) {
    const char* name = std::strrchr(library->dlpi_name, '/');
    name = name != nullptr ? name + 1 : library->dlpi_name;
    constexpr const char* kNames[] = {"libibverbs", "librdmacm", "librocegw", "libmlx", "libnl-"};
    const bool verbs = std::strstr(name, "-rdmav") != nullptr ||
                       std::any_of(std::begin(kNames), std::end(kNames), [&](const char* each) {
                         return std::strncmp(name, each, std::strlen(each)) == 0;
                       });
    for (int i = 0; verbs && i < library->dlpi_phnum; i++) {
      const auto& part = library->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      const uintptr_t begin = library->dlpi_addr + part.p_vaddr;
      const size_t count = g_verbs_codes.load();
      if (IsVerbsLibrary(reinterpret_cast<const void*>(begin)) || count == std::size(g_verbs_code))
        continue;
      g_verbs_code[count] = {begin, begin + part.p_memsz};
      g_verbs_codes.store(count + 1, std::memory_order_release);
    }
    return 0;
  };
  dl_iterate_phdr(add, nullptr);
}

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

// The parent's thread that opened the memory, or closed it, is not in the child. A child whose
// parent was opening the memory has none either: the verbs libraries are half open.
void InChild() {
  g_opening = PTHREAD_MUTEX_INITIALIZER;
  DisownAllDescriptors();
  if (g_state.load() == State::kUnopened) return;
  g_state = State::kChild;
  if (FarMemory* memory = g_memory.load(); memory != nullptr) {
    const Inside inside;
    memory->BecomeChild();
  }
}

// Before the program starts threads.
[[gnu::constructor]] void Prepare() {
  const Inside inside;
  TheSettings();
  FindVerbsLibraries();
  pthread_atfork(BeforeFork, nullptr, InChild);
}

void ReportAtEnd() {
  FarMemory* memory = g_memory.load();
  if (g_state.load() != State::kOpen || memory == nullptr) return;
  const Inside inside;
  Say(memory->Report());
}

void Open() {
  // Threads that are started inherit the blocked signals.
  const Inside inside;
  g_state = State::kOpening;
  const char* engine = secure_getenv("ROCEGW_IN_PROCESS");
  if (engine != nullptr && std::strcmp(engine, "1") == 0) {
    Say("no remote memory with a gateway in the program, whose own memory would be remote");
    g_state = State::kFailed;
    return;
  }
  const bool alone = IsAlone();
  const std::vector<int> before = OpenDescriptors();
  auto memory = [] {
    const LowNumbersTaken taken;
    return FarMemory::Open(TheSettings());
  }();
  if (!memory.ok()) {
    Say("no remote memory, the program goes on without: " + memory.status().text());
    g_state = State::kFailed;
    return;
  }
  OwnDescriptor(memory.value()->descriptor());
  OwnNewDescriptors(before, alone);
  FindVerbsLibraries();
  g_memory = memory.value().release();
  if (TheSettings().report) std::atexit(ReportAtEnd);
  g_state = State::kOpen;
}

}  // namespace

Inside::Inside() : before_(t_inside) {
  if (!before_) blocked_.emplace();
  t_inside = true;
}

Inside::~Inside() { t_inside = before_; }
bool Inside::Is() { return t_inside; }

FarMemory* ForMapping(size_t bytes, const void* caller) {
  // Most calls end here.
  if (bytes < FarMemory::kFewestLeast || t_inside) return nullptr;
  const State state = g_state.load();
  if (state == State::kFailed || state == State::kChild) return nullptr;
  if (bytes < TheSettings().least || TheSettings().fraction == 0) return nullptr;
  if (IsVerbsLibrary(caller)) return nullptr;
  if (state != State::kOpen) {
    const Inside inside;
    pthread_mutex_lock(&g_opening);
    if (g_state.load() == State::kUnopened) Open();
    pthread_mutex_unlock(&g_opening);
  }
  return g_state.load() == State::kOpen ? g_memory.load() : nullptr;
}

FarMemory* Known() {
  const State state = g_state.load();
  return state == State::kOpen || state == State::kChild ? g_memory.load() : nullptr;
}

FarMemory* Owner(const void* at) {
  FarMemory* memory = Known();
  return memory != nullptr && memory->Contains(at) ? memory : nullptr;
}

void Close() {
  const Inside inside;
  pthread_mutex_lock(&g_opening);
  if (g_state.load() == State::kUnopened) g_state = State::kFailed;
  pthread_mutex_unlock(&g_opening);
  if (FarMemory* memory = Known(); memory != nullptr) memory->Close();
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
