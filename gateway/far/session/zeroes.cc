// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/zeroes.h"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace rocegw::far {

int WriteZeroes(Dispatcher& dispatcher, uint64_t offset, uint64_t length) {
  constexpr uint64_t kMostAtOnce = 1 << 20;
  if (offset > dispatcher.size() || length > dispatcher.size() - offset) return -EINVAL;
  std::vector<uint8_t> zeroes;
  const uint64_t end = offset + length;
  while (offset < end) {
    const auto data = dispatcher.NextData(offset, end, kMostAtOnce);
    if (!data) break;
    zeroes.resize(kMostAtOnce);
    const int error = dispatcher.SubmitAndWait(Direction::kWrite, data->begin, zeroes.data(),
                                               data->end - data->begin);
    if (error != 0) return error;
    offset = data->end;
  }
  return 0;
}

}  // namespace rocegw::far
