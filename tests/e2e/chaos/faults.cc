// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/chaos/faults.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

namespace rocegw::testing::chaos {
namespace {

using std::chrono::milliseconds;

// rocegw-controller when its environment is not as it must be.
constexpr int kGaveUp = 3;
constexpr milliseconds kLook(100);
constexpr milliseconds kRestartPause(500);

}  // namespace

Faults::Faults(Controllers& controllers, EtcdCluster& etcd, uint64_t seed, EventLog& log)
    : controllers_(controllers),
      etcd_(etcd),
      random_(seed),
      log_(log),
      targets_(controllers.size() + etcd.size()) {
  for (size_t i = 0; i < controllers_.size(); ++i)
    processes_.emplace_back(controllers_[i]->pid(), i);
}

std::string Faults::NameOf(size_t target) const {
  if (IsController(target)) return "controller " + std::to_string(target);
  return "etcd " + std::to_string(target - controllers_.size());
}

size_t Faults::Impaired(size_t begin, size_t end) const {
  return static_cast<size_t>(
      std::count_if(targets_.begin() + static_cast<ptrdiff_t>(begin),
                    targets_.begin() + static_cast<ptrdiff_t>(end),
                    [](const Target& target) { return target.state != State::kUp; }));
}

void Faults::StartController(size_t controller) {
  controllers_[controller]->Start();
  processes_.emplace_back(controllers_[controller]->pid(), controller);
  log_.Note("start " + NameOf(controller) + " as process " +
            std::to_string(controllers_[controller]->pid()));
}

void Faults::Strike(size_t target, bool kill, milliseconds time) {
  log_.Note((kill ? "kill " : "stop ") + NameOf(target) + " for " + std::to_string(time.count()) +
            " ms");
  ++count_;
  targets_[target] = {kill ? State::kKilled : State::kStopped, Clock::now() + time};
  if (IsController(target)) {
    if (kill) {
      controllers_[target]->Kill();
    } else {
      controllers_[target]->Stop();
    }
  } else {
    etcd_.Signal(target - controllers_.size(), kill ? SIGKILL : SIGSTOP);
  }
}

void Faults::Recover(size_t target) {
  const State state = std::exchange(targets_[target].state, State::kUp);
  if (state == State::kUp) return;
  log_.Note("back " + NameOf(target));
  const size_t member = target - controllers_.size();
  if (IsController(target)) {
    if (state == State::kKilled) {
      StartController(target);
    } else {
      controllers_[target]->Continue();
    }
  } else if (state == State::kKilled) {
    etcd_.Restart(member);
  } else {
    etcd_.Signal(member, SIGCONT);
  }
}

void Faults::StrikeAny() {
  const size_t target = random_.Below(targets_.size());
  const bool kill = random_.Coin();
  const bool seldom = random_.Below(8) == 0;
  const bool very_long = random_.Below(5) == 0;
  const milliseconds time(very_long && !kill && IsController(target) ? random_.Between(11000, 16000)
                                                                     : random_.Between(100, 4000));
  if (targets_[target].state != State::kUp) return;
  // Mostly a majority of members and one controller are there; now and then they are not.
  const size_t impaired = IsController(target) ? Impaired(0, controllers_.size())
                                               : Impaired(controllers_.size(), targets_.size());
  const size_t usual = IsController(target) ? 1 : 0;
  if (impaired > usual && !seldom) return;
  if (IsController(target) && !controllers_[target]->running()) return;
  Strike(target, kill, time);
}

void Faults::LookAfterControllers() {
  for (size_t i = 0; i < controllers_.size(); ++i) {
    if (targets_[i].state != State::kUp) continue;
    const std::optional<int> status = controllers_[i]->Ended();
    if (!status.has_value()) continue;
    log_.Note(NameOf(i) + " ended with status " + std::to_string(*status));
    if (!WIFEXITED(*status) || WEXITSTATUS(*status) != kGaveUp) {
      problem_ = NameOf(i) + " ended by itself with wait status " + std::to_string(*status);
    }
    targets_[i] = {State::kKilled, Clock::now() + kRestartPause};
  }
}

void Faults::Run(std::chrono::seconds time, size_t first_stopped) {
  const auto end = Clock::now() + time;
  auto next = Clock::now() + milliseconds(3000);
  Strike(first_stopped, false, milliseconds(13000));
  while (Clock::now() < end) {
    auto wake = std::min({end, next, Clock::now() + kLook});
    for (const Target& target : targets_) {
      if (target.state != State::kUp) wake = std::min(wake, target.until);
    }
    const auto left = std::chrono::ceil<milliseconds>(wake - Clock::now());
    ::poll(nullptr, 0, static_cast<int>(std::max<int64_t>(0, left.count())));
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (targets_[i].state != State::kUp && targets_[i].until <= Clock::now()) Recover(i);
    }
    LookAfterControllers();
    if (Clock::now() < next) continue;
    StrikeAny();
    next = Clock::now() + milliseconds(random_.Between(200, 2500));
  }
}

void Faults::EndAll() {
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (!IsController(i)) Recover(i);
  }
  for (size_t i = 0; i < controllers_.size(); ++i) Recover(i);
  LookAfterControllers();
  for (size_t i = 0; i < controllers_.size(); ++i) Recover(i);
}

}  // namespace rocegw::testing::chaos
