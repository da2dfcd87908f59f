// A component that shows what the service answered, and goes on showing it while it asks again.
import { Component } from './ui.js';

/**
 * Loads data when it appears and whenever its key changes. A subclass has `keyOf(props)`, a text,
 * and `load(props, signal)`. `state` has `data`, `at` (the time of the data), `isLoading`, `error`.
 */
export class Loaded extends Component {
  state = { data: null, at: null, isLoading: true, error: null };

  componentDidMount() {
    this.reload();
  }

  componentDidUpdate(before) {
    if (this.keyOf(before) !== this.keyOf(this.props) || before.attempt !== this.props.attempt) {
      this.reload();
    }
  }

  componentWillUnmount() {
    this.asking?.abort();
  }

  async reload() {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    this.setState({ isLoading: true });
    try {
      const data = await this.load(this.props, asking.signal);
      if (asking.signal.aborted) return;
      this.setState({ data, at: new Date(), isLoading: false, error: null });
      this.props.app.isReached();
    } catch (error) {
      if (asking.signal.aborted) return;
      // A fault of this page is shown like a refusal: nothing waits in vain.
      const isHandled = this.props.app.fail(error);
      this.setState({ isLoading: false, error: isHandled ? null : error });
    }
  }
}
