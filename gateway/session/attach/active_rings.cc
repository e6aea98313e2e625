// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/active_rings.h"

#include <algorithm>

namespace rocegw::session {

ActiveRings::Active* ActiveRings::Find(const RingRequests& program) {
  const auto found = std::ranges::find(active_, &program, &Active::program);
  return found == active_.end() ? nullptr : &*found;
}

void ActiveRings::Note(RingRequests& program) {
  if (Active* const known = Find(program)) {
    known->sleeps = 0;
    return;
  }
  bool beyond = false;
  if (active_.size() >= kMost) {
    const auto idle =
        std::ranges::find_if(active_, [](const Active& active) { return active.sleeps != 0; });
    beyond = idle == active_.end() || working_ ||
             !RemoveIdle(static_cast<size_t>(idle - active_.begin()));
  }
  active_.push_back({&program, 0, beyond});
  program.SetAwake(true);
}

bool ActiveRings::RemoveIdle(size_t index) {
  RingRequests& program = *active_[index].program;
  program.SetAwake(false);
  // A request that the program put into the ring before would wait there: the program has not woken
  // the thread for it.
  if (program.HasRequest()) {
    program.SetAwake(true);
    return false;
  }
  active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

void ActiveRings::Remove(RingRequests& program) {
  Active* const known = Find(program);
  if (known == nullptr) return;
  program.SetAwake(false);
  if (working_) {
    known->program = nullptr;
  } else {
    active_.erase(active_.begin() + (known - active_.data()));
  }
}

bool ActiveRings::HasWork() const {
  return std::ranges::any_of(active_, [](const Active& active) {
    return active.program != nullptr && active.program->MayRead();
  });
}

void ActiveRings::Work() {
  working_ = true;
  const size_t count = active_.size();
  for (size_t i = 0; i < count; ++i) {
    RingRequests* const program = active_[(first_ + i) % count].program;
    if (program != nullptr && program->MayRead()) program->Read();
  }
  working_ = false;
  std::erase_if(active_, [](const Active& active) { return active.program == nullptr; });
  for (size_t i = active_.size(); i-- > 0;)
    if (active_[i].beyond) (void)RemoveIdle(i);
  ++first_;
}

void ActiveRings::SetAwake(bool awake) {
  for (Active& active : active_) {
    active.program->SetAwake(awake);
    if (!awake) ++active.sleeps;
  }
  if (!awake) return;
  for (size_t i = active_.size(); i-- > 0;)
    if (active_[i].sleeps > kIdleSleeps) (void)RemoveIdle(i);
}

}  // namespace rocegw::session
