// SPDX-License-Identifier: Apache-2.0
// A rocegw-controller process for tests of rocegwctl, in a directory of its own, and the program
// run against it. Killed with the object. One thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>

namespace rocegw::testing {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

// Runs rocegwctl through the shell, with HOME, ROCEGW_CONFIG and ROCEGW_CONTROLLER in `directory`
// unless the text before it (`before`, such as "A=b echo x |") says otherwise.
Outcome RunCtl(const std::string& directory, const std::string& arguments,
               const std::string& before = "");
// A shell command as it stands.
Outcome RunShell(const std::string& directory, const std::string& command);

class ControllerTest : public ::testing::Test {
 protected:
  // One controller for the tests of a suite: each uses names of its own.
  static void SetUpTestSuite();
  static void TearDownTestSuite();

  static Outcome Ctl(const std::string& arguments, const std::string& before = "") {
    return RunCtl(directory_, arguments, before);
  }
  // As Ctl, and it must succeed; its output.
  static std::string Must(const std::string& arguments, const std::string& before = "");
  static std::string File(const std::string& name) { return directory_ + "/" + name; }
  static std::string AdminSocket() { return File("state/admin.sock"); }
  static void Write(const std::string& name, const std::string& text);

  // The output, with what differs from run to run replaced, against golden/NAME.
  static void ExpectGolden(const std::string& name, const std::string& output);

 private:
  static std::string directory_;
  static pid_t pid_;
};

}  // namespace rocegw::testing
