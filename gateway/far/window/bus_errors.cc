// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/window/bus_errors.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "gateway/far/window/window.h"

namespace rocegw::far {
namespace {

struct Place {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<Window*> window{nullptr};  // set last, and cleared first
};

std::array<Place, BusErrors::kMostWindows> places;
std::mutex places_mutex;  // guards changes
bool installed = false;
struct sigaction before;  // the program's

// Whether the fault is one of a store. Where the context does not say so, a store to a protected
// page is known by the page's being there.
bool IsStore(const void* context) {
#if defined(__x86_64__)
  static_assert(BusErrors::kStoresAreKnown);
  constexpr greg_t kWrite = 2;  // bit of the error code of a page fault
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#else
  static_cast<void>(context);
  return false;
#endif
}

// Hands the signal to the program, with the signals blocked that it asked for.
void PassOn(int number, siginfo_t* info, void* context) {
  const bool takes_info = (before.sa_flags & SA_SIGINFO) != 0;
  if (!takes_info && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) {
    // The instruction is tried again and ends the program, as the kernel does for SIG_IGN too.
    signal(number, SIG_DFL);
    return;
  }
  sigset_t blocked = static_cast<ucontext_t*>(context)->uc_sigmask;
  for (int each = 1; each < NSIG; each++) {
    if (sigismember(&before.sa_mask, each) == 1) sigaddset(&blocked, each);
  }
  if ((before.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, number);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  if (takes_info) {
    before.sa_sigaction(number, info, context);
  } else {
    before.sa_handler(number);
  }
}

void OnBusError(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (!BusErrors::Handle(info, context)) PassOn(number, info, context);
  errno = error;
}

bool Install() {
  struct sigaction action {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &before) == 0;
}

}  // namespace

bool BusErrors::Add(Window* window, uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(places_mutex);
  installed = installed || Install();
  if (!installed) return false;
  for (Place& place : places) {
    if (place.window != nullptr) continue;
    place.begin = begin;
    place.end = end;
    place.window = window;
    return true;
  }
  return false;
}

void BusErrors::Remove(const Window* window) {
  const std::lock_guard lock(places_mutex);
  for (Place& place : places) {
    if (place.window == window) place.window = nullptr;
  }
}

bool BusErrors::Handle(const void* info, const void* context) {
  const auto& about = *static_cast<const siginfo_t*>(info);
  // A lost page raises BUS_MCEERR_AR, and a signal that a process sends is of no page.
  if (about.si_code != BUS_ADRERR) return false;
  const auto address = reinterpret_cast<uintptr_t>(about.si_addr);
  for (Place& place : places) {
    Window* const window = place.window;
    if (window == nullptr || address < place.begin || address >= place.end) continue;
    return window->HandleHere(address, IsStore(context));
  }
  return false;
}

}  // namespace rocegw::far
