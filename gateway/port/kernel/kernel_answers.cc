// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/kernel_answers.h"

namespace rocegw::port {

KernelAnswers::Resolved KernelAnswers::Resolve(TimePoint now, PoolTag pool,
                                               const wire::Gid& destination) {
  if (const Answer* const answer = answers_.Find(destination)) return {*answer, false};
  return {{}, open_.Open(now, pool, destination).is_new};
}

std::optional<wire::Gid> KernelAnswers::NextQuestion() {
  if (auto question = open_.NextDue()) return question;
  if (again_.empty()) return std::nullopt;
  const wire::Gid destination = again_.back();
  again_.pop_back();
  return destination;
}

KernelAnswers::Change KernelAnswers::Set(const wire::Gid& destination, const Answer& answer) {
  if (Answer* const known = answers_.Peek(destination)) {
    if (*known == answer) return Change::kNone;
    if (answer.reach == Reach::kUnknown) {
      answers_.Erase(destination);
    } else {
      *known = answer;
    }
    return Change::kChanged;
  }
  if (answer.reach == Reach::kUnknown) return Change::kNone;
  const auto pool = open_.Close(destination);
  // No queue waits for the answer any more.
  if (!pool) return Change::kNone;
  answers_.Insert(destination, *pool) = answer;
  return Change::kLearned;
}

void KernelAnswers::AskAgain(TimePoint now, bool all) {
  open_.AskAllAgain(now);
  if (!all) return;
  again_.clear();
  answers_.ForEach(
      [&](const wire::Gid& destination, const Answer&) { again_.push_back(destination); });
}

}  // namespace rocegw::port
