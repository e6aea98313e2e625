// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/neighbour/open_questions.h"

#include <algorithm>

namespace rocegw::port {

OpenQuestions::Opened OpenQuestions::Open(TimePoint now, PoolTag pool, const wire::Gid& about) {
  std::vector<Question>& questions = pools_[pool];
  while (!questions.empty() && now - questions.front().since > kPatience)
    questions.erase(questions.begin());
  const auto found = std::find_if(questions.begin(), questions.end(),
                                  [&](const Question& one) { return one.about == about; });
  if (found != questions.end()) return {&*found, false};
  if (questions.size() >= kMostPerPool) {
    if (now - questions.front().since < kLeast) return {};
    questions.erase(questions.begin());
  }
  questions.push_back({.about = about, .pool = pool, .since = now, .asked = kNotAsked});
  return {&questions.back(), true};
}

std::optional<PoolTag> OpenQuestions::Close(const wire::Gid& about) {
  std::optional<PoolTag> pool;
  for (auto each = pools_.begin(); each != pools_.end();) {
    const size_t closed =
        std::erase_if(each->second, [&](const Question& one) { return one.about == about; });
    if (closed != 0) pool = each->first;
    each = each->second.empty() ? pools_.erase(each) : std::next(each);
  }
  return pool;
}

std::optional<wire::Gid> OpenQuestions::NextDue() {
  auto each = pools_.upper_bound(last_);
  for (size_t looked = 0; looked < pools_.size(); ++looked, ++each) {
    if (each == pools_.end()) each = pools_.begin();
    const auto due = std::find_if(each->second.begin(), each->second.end(),
                                  [](const Question& one) { return one.due; });
    if (due == each->second.end()) continue;
    due->due = false;
    last_ = each->first;
    return due->about;
  }
  return std::nullopt;
}

void OpenQuestions::EndOld(TimePoint now) {
  for (auto each = pools_.begin(); each != pools_.end();) {
    std::erase_if(each->second, [&](const Question& one) { return now - one.since > kPatience; });
    each = each->second.empty() ? pools_.erase(each) : std::next(each);
  }
}

void OpenQuestions::AskAllAgain(TimePoint now) {
  EndOld(now);
  for (auto& [pool, questions] : pools_) {
    for (Question& one : questions) one.due = true;
  }
}

}  // namespace rocegw::port
