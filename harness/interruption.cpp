// SPDX-License-Identifier: Apache-2.0
#include "harness/interruption.hpp"

#include <csignal>
#include <initializer_list>

namespace qkcts {
namespace {

volatile std::sig_atomic_t received = 0;

// The second signal ends the program at once.
extern "C" void on_interruption(int signal) {
  received = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interruption() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = on_interruption;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

int interruption() {
  return received;
}

}  // namespace qkcts
