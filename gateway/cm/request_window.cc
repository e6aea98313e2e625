// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/request_window.h"

#include <algorithm>

namespace rocegw::cm {

uint64_t RequestWindow::Enter(const Line& line, uint32_t local_comm_id) {
  Queue& queue = queues_.try_emplace(line, Queue{config_.first}).first->second;
  if (queue.taken < queue.room && queue.waiting.empty()) {
    ++queue.taken;
    return 0;
  }
  queue.waiting.emplace(++last_ticket_, local_comm_id);
  return last_ticket_;
}

void RequestWindow::Leave(const Line& line, End end, TimePoint now) {
  const auto at = queues_.find(line);
  Queue& queue = at->second;
  --queue.taken;
  if (end == End::kAnswered) {
    queue.room = std::min(queue.room + 1, config_.most);
  } else if (end == End::kRepeated && now >= queue.shrink_after) {
    queue.room = std::max(queue.room / 2, config_.least);
    queue.shrink_after = now + config_.interval;
  }
  if (!queue.waiting.empty()) freed_.push_back(line);
  EraseIfIdle(at);
}

void RequestWindow::Forget(const Line& line, uint64_t ticket) {
  const auto at = queues_.find(line);
  at->second.waiting.erase(ticket);
  EraseIfIdle(at);
}

std::vector<uint32_t> RequestWindow::TakeTurns() {
  std::vector<uint32_t> turns;
  for (const Line& line : freed_) {
    const auto at = queues_.find(line);
    if (at == queues_.end()) continue;
    Queue& queue = at->second;
    for (; queue.taken < queue.room && !queue.waiting.empty(); ++queue.taken) {
      turns.push_back(queue.waiting.begin()->second);
      queue.waiting.erase(queue.waiting.begin());
    }
  }
  freed_.clear();
  return turns;
}

void RequestWindow::EraseIfIdle(std::map<Line, Queue>::iterator at) {
  if (at->second.taken == 0 && at->second.waiting.empty()) queues_.erase(at);
}

}  // namespace rocegw::cm
