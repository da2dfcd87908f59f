// A component that shows loaded data, and keeps it on the screen during a reload.
import { Component } from './ui.js';

/**
 * Loads data when it appears and whenever its key changes. A subclass has `keyOf(props)`, a text,
 * and `load(props, signal)`. `state` has `data`, its time `at` and its key `of`, `isLoading`, `error`.
 */
export class Loaded extends Component {
  state = { data: null, at: null, of: null, isLoading: true, error: null };

  componentDidMount() {
    this.reload();
  }

  componentDidUpdate(before) {
    if (this.keyOf(before) !== this.keyOf(this.props)) this.reload();
  }

  componentWillUnmount() {
    this.asking?.abort();
    this.props.app.recovery.remove(this);
  }

  /** True while the data belongs to another key, because the load is not done. */
  isOld() {
    const { data, of } = this.state;
    return data !== null && of !== this.keyOf(this.props);
  }

  /** Loads the data, at once or after a failure. */
  reload = async () => {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    this.setState({ isLoading: true });
    const { props } = this;
    try {
      const data = await this.load(props, asking.signal);
      if (asking.signal.aborted) return;
      const of = this.keyOf(props);
      this.setState({ data, at: new Date(), of, isLoading: false, error: null });
      this.props.app.reached(this);
    } catch (error) {
      if (asking.signal.aborted) return;
      // An error of this page is shown like an error response.
      const isHandled = this.props.app.fail(error, this);
      this.setState({ isLoading: false, error: isHandled ? null : error });
    }
  };
}
