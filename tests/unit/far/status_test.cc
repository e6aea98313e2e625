// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/status.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

TEST(FarStatus, ShowsSizesInUnitsAndCountsAsTheyAre) {
  const std::string page =
      "HTTP/1.1 200 OK\r\n\r\n"
      "# TYPE rocegw_memory_leases gauge\n"
      "rocegw_memory_leases 3\n"
      "rocegw_memory_leased_bytes 1610612736\n"
      "rocegw_memory_tenant_leased_bytes{tenant=\"a\"} 512\n"
      "rocegw_memory_leases_granted_total 7\n"
      "process_open_fds 9\n";
  EXPECT_EQ(StatusLines(page),
            "leases                                   3\n"
            "leased                                   1.5 GiB\n"
            "tenant_leased{tenant=\"a\"}                512 B\n"
            "leases_granted                           7\n");
}

}  // namespace
}  // namespace rocegw::far
