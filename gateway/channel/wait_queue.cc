// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/wait_queue.h"

#include <algorithm>

namespace rocegw::channel {

void WaitQueue::Push(uint32_t tenant, WorkerObject qp, bool goes_on) {
  if (crowd_ == nullptr) crowd_ = std::make_unique<Crowd>();
  std::vector<Tenant>& tenants = crowd_->tenants;
  auto known = std::find_if(tenants.begin(), tenants.end(),
                            [&](const Tenant& t) { return t.tag == tenant; });
  if (known == tenants.end()) known = tenants.insert(known, {tenant, 0, {}});
  // A tenant that returns starts at the service of those that kept waiting: absence earns no credit
  // and clears no debt.
  if (known->waiting.empty()) known->served = std::max(known->served, crowd_->time);
  if (goes_on) {
    known->waiting.push_front(qp);
  } else {
    known->waiting.push_back(qp);
  }
}

WorkerObject WaitQueue::Pop() {
  std::vector<Tenant>& tenants = crowd_->tenants;
  size_t next = tenants.size();
  bool others = false;
  for (size_t i = 0; i < tenants.size(); ++i) {
    const size_t at = (crowd_->turn + i) % tenants.size();
    if (tenants[at].waiting.empty()) continue;
    others |= next != tenants.size();
    if (next == tenants.size() || tenants[at].served < tenants[next].served) next = at;
  }
  crowd_->turn = next + 1;
  crowd_->time = tenants[next].served;
  const WorkerObject qp = tenants[next].waiting.front();
  tenants[next].waiting.pop_front();
  // A tenant keeps its account between its queue pairs while others wait.
  if (!others && tenants[next].waiting.empty()) crowd_.reset();
  return qp;
}

uint32_t WaitQueue::size() const {
  if (crowd_ == nullptr) return 0;
  size_t waiting = 0;
  for (const Tenant& tenant : crowd_->tenants) waiting += tenant.waiting.size();
  return static_cast<uint32_t>(waiting);
}

void WaitQueue::Charge(uint32_t tenant, uint64_t bytes) {
  if (crowd_ == nullptr) return;
  for (Tenant& known : crowd_->tenants)
    if (known.tag == tenant) known.served += bytes;
}

size_t WaitQueue::bytes() const {
  return crowd_ == nullptr ? 0 : sizeof(Crowd) + crowd_->tenants.capacity() * sizeof(Tenant);
}

}  // namespace rocegw::channel
