// ktrace: the command line.
int main() { return 2; }
