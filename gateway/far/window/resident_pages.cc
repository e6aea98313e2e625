// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/window/resident_pages.h"

#include <algorithm>

namespace rocegw::far {

uint64_t ResidentPages::Fetch(uint64_t page) {
  read_ahead_ = page == expected_ ? std::min(read_ahead_ * 2, kMostReadAhead) : 1;
  uint64_t pages = 0;
  while (pages < read_ahead_ && page + pages < states_.size() &&
         states_[page + pages] == State::kAbsent && stored_[page + pages] == stored_[page]) {
    states_[page + pages] = State::kReading;
    pages++;
  }
  used_ += pages;
  expected_ = page + pages;
  return pages;
}

void ResidentPages::Arrived(uint64_t page, bool dirty) {
  states_[page] = dirty ? State::kDirty : State::kClean;
  Queue(page);
}

void ResidentPages::Lost(uint64_t page) {
  states_[page] = State::kLost;
  used_--;
}

void ResidentPages::Abandoned(uint64_t page) {
  states_[page] = State::kAbsent;
  used_--;
}

template <typename Wanted>
std::vector<uint64_t> ResidentPages::TakeFirst(Arrivals& from, size_t most,
                                               const Wanted& is_wanted) const {
  std::vector<uint64_t> taken;
  while (taken.size() < most && !from.empty()) {
    const Arrival arrival = from.front();
    from.pop_front();
    if (is_wanted(arrival.page) && arrived_[arrival.page] == arrival.number) {
      taken.push_back(arrival.page);
    }
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

std::vector<uint64_t> ResidentPages::TakeVictims(size_t most) {
  return TakeFirst(arrivals_, most, [this](uint64_t page) { return IsResident(page); });
}

std::vector<uint64_t> ResidentPages::TakeInactive(size_t most) {
  return TakeFirst(inactive_since_, most, [this](uint64_t page) { return IsInactive(page); });
}

void ResidentPages::Deactivated(uint64_t page, uint32_t place) {
  states_[page] = IsDirty(page) ? State::kInactiveDirty : State::kInactiveClean;
  places_[page] = place;
  inactive_since_.push_back({page, ++arrived_[page]});
  inactive_++;
}

void ResidentPages::Reactivated(uint64_t page, bool dirty) {
  inactive_--;
  states_[page] = dirty ? State::kDirty : State::kClean;
  Queue(page);
}

void ResidentPages::Evicting(uint64_t page) {
  if (IsInactive(page)) inactive_--;
  states_[page] = State::kEvicting;
}

void ResidentPages::Evicted(uint64_t page) {
  if (IsInactive(page)) inactive_--;
  if (states_[page] != State::kClean && states_[page] != State::kInactiveClean) {
    stored_[page] = true;
  }
  states_[page] = State::kAbsent;
  used_--;
}

void ResidentPages::Discarded(uint64_t page) {
  if (states_[page] == State::kHere) return;
  if (IsResident(page) || IsInactive(page)) used_--;
  if (IsInactive(page)) inactive_--;
  states_[page] = State::kAbsent;
  stored_[page] = false;
}

uint64_t ResidentPages::FetchStored(uint64_t page, uint64_t end, uint64_t most) {
  uint64_t pages = 0;
  while (pages < most && page + pages < end && states_[page + pages] == State::kAbsent &&
         stored_[page + pages]) {
    states_[page + pages] = State::kReading;
    pages++;
  }
  used_ += pages;
  return pages;
}

void ResidentPages::Left(uint64_t page) {
  if (IsResident(page) || states_[page] == State::kReading) used_--;
  states_[page] = State::kHere;
  stored_[page] = false;
}

void ResidentPages::Rejoined(uint64_t page) {
  if (states_[page] == State::kHere) states_[page] = State::kAbsent;
}

std::vector<uint64_t> ResidentPages::NextDirty(uint64_t from, size_t most) const {
  std::vector<uint64_t> dirty;
  for (uint64_t page = from; page < states_.size() && dirty.size() < most; page++) {
    if (IsDirty(page)) dirty.push_back(page);
  }
  return dirty;
}

}  // namespace rocegw::far
