// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/cm/reachability.h"

namespace rocegw::session {
namespace {

// Lifetime and number of results, the same as for cached routes (route_lookup.cc).
constexpr Duration kRecent = Milliseconds(50);
constexpr size_t kMostRecent = 16;

}  // namespace

Reachability::Reachability(ControlLoop& loop)
    : loop_(loop),
      self_(std::make_shared<Reachability*>(this)),
      waits_([&loop, self = std::weak_ptr(self_)](uint64_t number, bool reachable) {
        loop.Post([self, number, reachable] {
          if (const auto alive = self.lock()) (*alive)->OnReport(number, reachable);
        });
      }) {
  known_.reserve(kMostRecent);
}

bool Reachability::Check(SessionId owner, cm::CmHandle id, const port::NeighbourWaits::Wait& wait,
                         Then then) {
  Cancel(owner, id);
  const TimePoint now = ControlLoop::Now();
  std::erase_if(known_, [&](const Known& known) { return known.until <= now; });
  for (const Known& known : known_) {
    if (known.source == wait.source && known.destination == wait.destination) return true;
  }
  const uint64_t number = next_number_++;
  if (!waits_.Start(number, wait)) return true;
  const Key key{owner, id};
  waiting_.emplace(key, Waiting{number, wait.source, wait.destination, std::move(then)});
  by_number_.emplace(number, key);
  return false;
}

void Reachability::Cancel(SessionId owner, cm::CmHandle id) {
  const auto at = waiting_.find({owner, id});
  if (at != waiting_.end()) Drop(at);
}

void Reachability::Cancel(SessionId owner) {
  for (auto at = waiting_.lower_bound({owner, {}});
       at != waiting_.end() && at->first.owner == owner;) {
    Drop(at++);
  }
}

void Reachability::CancelAll() {
  while (!waiting_.empty()) Drop(waiting_.begin());
}

void Reachability::Drop(std::map<Key, Waiting>::iterator at) {
  waits_.Cancel(at->second.number);
  by_number_.erase(at->second.number);
  waiting_.erase(at);
}

void Reachability::OnReport(uint64_t number, bool reachable) {
  const auto named = by_number_.find(number);
  if (named == by_number_.end()) return;  // cancelled meanwhile
  const auto at = waiting_.find(named->second);
  Waiting ended = std::move(at->second);
  waiting_.erase(at);
  by_number_.erase(named);
  if (reachable && known_.size() != kMostRecent)
    known_.push_back({ended.source, ended.destination, ControlLoop::Now() + kRecent});
  ended.then(reachable);
}

}  // namespace rocegw::session
