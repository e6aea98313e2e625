// SPDX-License-Identifier: Apache-2.0
// What stands on standard output: whole for programs, in one order, and an error where it cannot be
// written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/cli/controller_process.h"

namespace rocegw::testing {
namespace {

class RocegwctlOutputTest : public ControllerTest {};

TEST_F(RocegwctlOutputTest, ThatCannotBeWritten_IsAFailure) {
  Must("create tenant full");
  for (const std::string words : {"get tenants", "get tenants -o yaml", "--help", "--version",
                                  "completion bash", "get --help", "__complete g"}) {
    const Outcome outcome = Ctl(words + " > /dev/full");
    EXPECT_EQ(outcome.code, 1) << words;
    EXPECT_NE(outcome.err.find("cannot write to standard output"), std::string::npos)
        << words << ": " << outcome.err;
  }
  // A reader that has seen enough is no failure.
  EXPECT_EQ(Ctl("completion bash | true").err, "");
}

TEST_F(RocegwctlOutputTest, OfTheDaemons_ThatCannotBeWritten_IsAFailure) {
  for (const char* const program : {CONTROLLER_PROGRAM, AGENT_PROGRAM}) {
    for (const char* const option : {"--help", "--version", "--print-default-config"}) {
      const Outcome outcome =
          RunShell(File(""), std::string(program) + " " + option + " > /dev/full");
      EXPECT_EQ(outcome.code, 3) << program << " " << option;
      EXPECT_NE(outcome.err.find("cannot write to standard output"), std::string::npos)
          << outcome.err;
    }
  }
}

TEST_F(RocegwctlOutputTest, TableInAPipe_IsNotCut) {
  const std::string name(30, 'n');
  Must("create tenant " + name + " display_name='" + std::string(60, 'd') + "' labels.suite=wide");
  EXPECT_NE(Must("get tenants --selector suite=wide").find(name), std::string::npos);
  const std::string pool = name + "/" + std::string(28, 'p');
  Must("create pool " + pool + "-1 labels.suite=wide");
  Must("create pool " + pool + "-2 labels.suite=wide");
  const std::string pools = Must("get pools --selector suite=wide");
  EXPECT_NE(pools.find(pool + "-1 "), std::string::npos) << pools;
  EXPECT_NE(pools.find(pool + "-2 "), std::string::npos) << pools;
}

TEST_F(RocegwctlOutputTest, Labels_AreSorted) {
  Must("create tenant sorted labels.m=1 labels.z=2 labels.a=3 labels.k=4 labels.c=5");
  const std::string yaml = Must("get tenant sorted -o yaml");
  const std::string json = Must("get tenant sorted -o json");
  for (const std::string& text : {yaml, json}) {
    size_t before = 0;
    for (const char* const key : {"a", "c", "k", "m", "z"}) {
      const std::string quoted = std::string("\"") + key + "\":";
      const size_t json_at = text.find(quoted);
      const size_t at =
          json_at != std::string::npos ? json_at : text.find(std::string("    ") + key + ":");
      ASSERT_NE(at, std::string::npos) << key << " in " << text;
      EXPECT_GT(at, before) << key << " in " << text;
      before = at;
    }
  }
}

TEST_F(RocegwctlOutputTest, EmptyLabel_IsCreatedAsItIsApplied) {
  Write("label.yaml", "name: tenants/label\nmeta: {labels: {empty: '', full: x}}\n");
  EXPECT_EQ(Must("apply -f " + File("label.yaml")), "tenants/label created\n");
  EXPECT_EQ(Must("apply -f " + File("label.yaml")), "tenants/label unchanged\n");
  EXPECT_NE(Must("get tenant label -o yaml").find("empty: \"\""), std::string::npos);
}

TEST_F(RocegwctlOutputTest, KeyGivenTwice_IsRefusedWithItsLine) {
  struct Case {
    const char* text;
    const char* line;
  };
  for (const Case& one :
       {Case{"name: tenants/twice\nspec:\n  weight: 1\n  weight: 2\n", "line 4"},
        Case{"name: tenants/twice\nname: tenants/other\n", "line 2"},
        Case{"name: tenants/twice\nspec:\n  display_name: a\n  displayName: b\n", "line 4"},
        Case{"name: tenants/twice\nmeta:\n  labels:\n    a: b\n    a: c\n", "line 5"}}) {
    Write("twice.yaml", one.text);
    const Outcome outcome = Ctl("apply -f " + File("twice.yaml"));
    EXPECT_EQ(outcome.code, 2) << one.text;
    EXPECT_NE(outcome.err.find(one.line), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("is given twice"), std::string::npos) << outcome.err;
  }
}

TEST_F(RocegwctlOutputTest, UserCertificate_MakesItsFolderAndGoesRoundProxies) {
  const Outcome made =
      RunShell(File(""), std::string(CONTROLLER_PROGRAM) + " --state-dir " + File("state") +
                             " user-certificate dora --out " + File("new/dora"));
  ASSERT_EQ(made.code, 0) << made.err;
  const Outcome address =
      RunShell(File(""), "grep -o '127.0.0.1:[0-9]*' " + File("log") + " | head -1 | tr -d '\\n'");
  const std::string files =
      " --ca new/dora/ca.crt --certificate new/dora/dora.crt --key "
      "new/dora/dora.key";
  Must("config set-context direct --address " + address.out + files);
  Must("create rb dora role=viewer subject=spiffe://rocegw/user/dora");
  const std::string proxies =
      "ROCEGW_CONTROLLER= http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 "
      "grpc_proxy=http://127.0.0.1:1";
  const Outcome direct = Ctl("--context direct get tenants", proxies);
  EXPECT_EQ(direct.code, 0) << direct.err;
  // Nothing listens there.
  const int through = Ctl("--proxy --timeout 5 --context direct get tenants", proxies).code;
  EXPECT_TRUE(through == 6 || through == 7) << through;
  Must("config delete-context direct");
}

}  // namespace
}  // namespace rocegw::testing
