// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/request_window.h"

#include <algorithm>

namespace rocegw::cm {

uint64_t RequestWindow::Enter(const Line& line, uint32_t local_comm_id) {
  auto at = queues_.find(line);
  if (at == queues_.end())
    at = kept_queues_.Insert(queues_, line, Queue{config_.first, 0, TimePoint{INT64_MIN}, {}});
  Queue& queue = at->second;
  if (queue.taken < queue.room && queue.waiting.empty()) {
    ++queue.taken;
    return 0;
  }
  kept_waiting_.Insert(queue.waiting, ++last_ticket_, local_comm_id);
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
  Waiting& waiting = at->second.waiting;
  if (const auto place = waiting.find(ticket); place != waiting.end())
    kept_waiting_.Erase(waiting, place);
  EraseIfIdle(at);
}

const std::vector<uint32_t>& RequestWindow::TakeTurns() {
  turns_.clear();
  for (const Line& line : freed_) {
    const auto at = queues_.find(line);
    if (at == queues_.end()) continue;
    Queue& queue = at->second;
    for (; queue.taken < queue.room && !queue.waiting.empty(); ++queue.taken) {
      turns_.push_back(queue.waiting.begin()->second);
      kept_waiting_.Erase(queue.waiting, queue.waiting.begin());
    }
  }
  freed_.clear();
  return turns_;
}

void RequestWindow::EraseIfIdle(Queues::iterator at) {
  if (at->second.taken == 0 && at->second.waiting.empty()) kept_queues_.Erase(queues_, at);
}

void RequestWindow::Keep(size_t wanted) {
  kept_queues_.SetWanted(wanted);
  kept_waiting_.SetWanted(wanted);
  freed_.reserve(wanted);
  turns_.reserve(wanted);
}

bool RequestWindow::Refill(size_t most) {
  const bool queues = kept_queues_.Refill(queues_, most);
  Waiting of_any;
  const bool waiting = kept_waiting_.Refill(of_any, most);
  return queues || waiting;
}

}  // namespace rocegw::cm
