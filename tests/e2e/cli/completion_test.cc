// SPDX-License-Identifier: Apache-2.0
// The completion script, sourced in a real bash, with names from a real controller.
#include <gtest/gtest.h>

#include "tests/e2e/cli/controller_process.h"

namespace rocegw::testing {
namespace {

class RocegwctlCompletionTest : public ControllerTest {
 protected:
  // What bash would offer for the line, cursor at its end.
  static std::string Offered(const std::string& words) {
    Write("complete.sh", std::string("source <(") + ROCEGWCTL + " completion bash)\n" +
                             "complete -p rocegwctl >/dev/null || exit 9\n" + "COMP_WORDS=(" +
                             ROCEGWCTL + " " + words + ")\n" +
                             "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_rocegwctl\n" +
                             "printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const Outcome outcome = RunShell(File(""), "ROCEGW_CONTROLLER=unix:" + AdminSocket() +
                                                   " bash --norc " + File("complete.sh"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(RocegwctlCompletionTest, Bash_OffersCommandsKindsNamesFieldsAndValues) {
  Must("create tenant blue");
  Must("create tenant black");
  Must("create pool blue/web");
  Must("create gateway host-a");
  EXPECT_EQ(Offered("un"), "undrain\n");
  EXPECT_EQ(Offered("get t"), "tenants\n");
  EXPECT_EQ(Offered("get tenants bl"), "black\nblue\n");
  EXPECT_EQ(Offered("get pools ''"), "blue/web\n");
  EXPECT_EQ(Offered("get pools --tenant blue ''"), "web\n");
  EXPECT_EQ(Offered("get --tenant bla"), "black\n");
  EXPECT_EQ(Offered("drain ''"), "host-a\n");
  Must("create donor host-a/donor");
  EXPECT_EQ(Offered("drain donor ''"), "host-a/donor\n");
  EXPECT_EQ(Offered("approve donor ''"), "host-a/donor\n");
  EXPECT_EQ(Offered("revoke donor ''"), "host-a/donor\n");
  EXPECT_EQ(Offered("find d"), "donors\n");
  EXPECT_EQ(Offered("get qps --gateway h"), "host-a\n");
  EXPECT_EQ(Offered("update tenant blue wei"), "weight=\n");
  EXPECT_EQ(Offered("create pool blue/x quota.peak.q"), "quota.peak.qps=\n");
  EXPECT_EQ(Offered("get tenants -o ''"), "json\nname\ntable\nwide\nyaml\n");
  EXPECT_EQ(Offered("drain host-a --on-deadline d"), "disconnect\n");
  EXPECT_EQ(Offered("drain host-a --on-d"), "--on-deadline\n");
  EXPECT_EQ(Offered("operations w"), "wait\n");
  EXPECT_EQ(Offered("get sr"), "srqs\n");
  EXPECT_EQ(Offered("connectivity t"), "test\n");
  EXPECT_EQ(Offered("connectivity test host-a h"), "host-a\n");
  EXPECT_EQ(Offered("connectivity test --from h"), "host-a\n");
  EXPECT_EQ(Offered("connectivity test --ba"), "--bandwidth\n");
  EXPECT_EQ(Offered("completion z"), "zsh\n");
  EXPECT_EQ(Offered("nonsense x"), "\n");
}

TEST_F(RocegwctlCompletionTest, NobodyThere_OffersNothingAndSaysNothing) {
  const Outcome outcome =
      Ctl("__complete get tenants ''", "ROCEGW_CONTROLLER=unix:/nonexistent/x.sock");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
}

}  // namespace
}  // namespace rocegw::testing
