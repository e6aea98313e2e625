// SPDX-License-Identifier: Apache-2.0
// Destinations that queues asked for, and what the kernel's tables say about each. Decides what is
// asked next: new destinations first, pool by pool, then known ones again. Neither clock nor IO;
// not safe between threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/port/frame.h"
#include "gateway/port/link_layer.h"
#include "gateway/port/neighbour/fair_table.h"
#include "gateway/port/neighbour/open_questions.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

class KernelAnswers {
 public:
  static constexpr size_t kMostDestinations = 4096;

  struct Answer {
    Reach reach = Reach::kUnknown;
    MacAddress mac{};
    bool operator==(const Answer&) const = default;
  };
  // Change of what Resolve returns.
  enum class Change {
    kNone,
    kLearned,  // a destination that was unknown
    kChanged,  // another one
  };

  struct Resolved {
    Answer answer;
    bool is_new = false;  // NextQuestion returns the destination soon
  };
  Resolved Resolve(TimePoint now, PoolTag pool, const wire::Gid& destination);

  // Returns a destination to ask the kernel for; nothing: all were asked.
  std::optional<wire::Gid> NextQuestion();
  Change Set(const wire::Gid& destination, const Answer& answer);

  // Asks for all unknown destinations again, and with `all` for all others, too.
  void AskAgain(TimePoint now, bool all);

 private:
  FairTable<Answer> answers_{kMostDestinations};  // none is kUnknown
  OpenQuestions open_;
  std::vector<wire::Gid> again_;  // destinations of answers_ to ask for again
};

}  // namespace rocegw::port
